"""What models are called in figures, tables and prose, by their keys."""

import re

FAMILIES = {"resnet": "ResNet", "distilbert": "DistilBERT", "bert": "BERT", "roberta": "RoBERTa"}


def model_title(key):
    """Title of a model: that of its family, with its size; a key of no known family is its own title.

    Examples
    --------
    >>> [model_title(key) for key in ("resnet110", "bert-base-uncased", "distilbert-base-uncased", "other-model")]
    ['ResNet-110', 'BERT-base', 'DistilBERT', 'other-model']
    """
    match = re.fullmatch(r"([a-z]+?)-?(\d+|base|large)(-uncased)?", key)
    if match is None or match[1] not in FAMILIES:
        return key
    title = FAMILIES[match[1]]
    return title if title == "DistilBERT" else f"{title}-{match[2]}"
