// Airflow's theme, links out of the frame in which its UI shows these pages, labels of the time line, and a notice when a
// list can't be refreshed.
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
  // The frame's sandbox forbids links to change the window; a link of the window's own document may.
  addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[target=_top]");
    if (!link || window === window.top || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    var outside = window.top.document.createElement("a");
    outside.href = link.href;
    outside.click();
  });
  // A list refreshes itself; a notice is shown if it can't: login expired, ledger down, no response.
  function showStale(stale) { document.getElementById("stale").hidden = !stale; }
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach(function (failed) {
    addEventListener(failed, function () { showStale(true); });
  });
  addEventListener("htmx:afterSwap", function () { showStale(false); });
  // A time line is one element: the horizontal position gives the epoch; labels are in the order of the bars.
  function pointed(event) {
    var line = event.target.closest && event.target.closest("svg.timeline");
    if (!line) return null;
    var box = line.getBoundingClientRect();
    var place = Math.floor((event.clientX - box.left) / box.width * line.viewBox.baseVal.width);
    return { line: line, label: line.dataset.labels.split("\n")[place] || "" };
  }
  addEventListener("pointermove", function (event) {
    var bar = pointed(event);
    if (bar) bar.line.parentNode.querySelector("output").textContent = bar.label && "epoch " + bar.label;
  });
  addEventListener("click", function (event) {
    var bar = pointed(event);
    if (bar && bar.label) location.href = bar.line.dataset.epochs + parseInt(bar.label, 10);
  });
})();
