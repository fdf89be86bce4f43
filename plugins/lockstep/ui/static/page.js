// Airflow's theme, and links out of the frame that its UI shows these pages in.
(function () {
  "use strict";
  function follow() {
    var theme = null;
    try { theme = localStorage.getItem("theme"); } catch (refused) { /* no storage here: the browser's preference */ }
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }
  follow();
  addEventListener("storage", function (event) { if (event.key === "theme") follow(); });
  // The frame's sandbox keeps its links from leading the window elsewhere; one of the window's own may.
  addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[target=_top]");
    if (!link || window === window.top || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    var outside = window.top.document.createElement("a");
    outside.href = link.href;
    outside.click();
  });
})();
