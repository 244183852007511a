// Shows only the rows of one source, one verdict, or both. Without this script the page shows them all.
const form = document.querySelector("form.ledger-filter");
const rows = [...document.querySelectorAll("table.ledger tbody tr")];
const columns = [...document.querySelectorAll("table.ledger thead th")].map((head) => head.textContent.trim());

function apply() {
  const wanted = [...form.querySelectorAll("select")].map((select) => [
    columns.indexOf(select.parentElement.firstChild.textContent.trim()),
    select.value,
  ]);
  for (const row of rows) {
    row.hidden = wanted.some(([column, value]) => value && row.cells[column].textContent.trim() !== value);
  }
  form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
}

// A link to a row that the filter hides shows all rows.
function reveal() {
  const row = document.getElementById(location.hash.slice(1));
  if (row?.hidden) {
    form.reset();
    apply();
    row.scrollIntoView();
  }
}

form.addEventListener("change", apply);
form.addEventListener("reset", () => setTimeout(apply));
window.addEventListener("hashchange", reveal);
form.hidden = false;
apply();
