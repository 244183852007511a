// What scrolls inside itself can be reached with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const element of document.querySelectorAll(".bd-article :is(div.math, figure)")) watch.observe(element);
});

// Paper is white: a dark page prints light.
const page = document.documentElement;
let shownTheme;
window.addEventListener("beforeprint", () => {
  shownTheme = page.dataset.theme;
  page.dataset.theme = "light";
});
window.addEventListener("afterprint", () => {
  page.dataset.theme = shownTheme;
});
