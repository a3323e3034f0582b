// Names for what screen readers list, and the keyboard for tables and charts that scroll.
document$.subscribe(() => {
  document.querySelector("[role=dialog].md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-nav .md-nav").forEach((nav, i) => {
    const title = document.getElementById(nav.getAttribute("aria-labelledby"))?.textContent.trim();
    nav.setAttribute("aria-label", `${title ?? nav.getAttribute("aria-label")}, part ${i + 1}`);
    nav.removeAttribute("aria-labelledby");
  });
  setTimeout(() => {
    document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
    document.querySelectorAll(".md-typeset__scrollwrap, p:has(> img), .highlight-ipynb").forEach((wide) => {
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
    });
  });
});
