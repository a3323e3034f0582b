// Render the formulas that arithmatex marks, on every page that instant navigation loads.
document$.subscribe(({ body }) => {
  if (typeof katex === "undefined") return;
  body.querySelectorAll(".arithmatex").forEach((element) => {
    const source = element.textContent.trim();
    const display = source.startsWith("\\[");
    katex.render(source.slice(2, -2), element, { displayMode: display, throwOnError: false });
  });
});
