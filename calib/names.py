"""What data sets and models are called in figures, tables and prose, by their keys."""

DATASETS = {"cifar10h": "CIFAR-10H", "chaosnli-s": "ChaosNLI-S", "chaosnli-m": "ChaosNLI-M"}
MODELS = {
    "resnet8": "ResNet-8",
    "resnet14": "ResNet-14",
    "resnet20": "ResNet-20",
    "resnet32": "ResNet-32",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "resnet110": "ResNet-110",
    "distilbert-base-uncased": "DistilBERT",
    "bert-base-uncased": "BERT-base",
    "bert-large-uncased": "BERT-large",
    "roberta-base": "RoBERTa-base",
}
