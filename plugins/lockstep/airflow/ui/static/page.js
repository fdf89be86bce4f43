// Airflow's theme, links out of the frame that its UI shows these pages in, what a time line is asked by pointing, and
// whether a list is what it was a moment ago.
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
  // A list that renews itself says when it doesn't: the login has ended, the ledger is down, the server doesn't answer.
  function tellStale(is) { document.getElementById("stale").hidden = !is; }
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach(function (failed) {
    addEventListener(failed, function () { tellStale(true); });
  });
  addEventListener("htmx:afterSwap", function () { tellStale(false); });
  // A time line is one element: which epoch is meant is told by the place, and its lines stand in the order of the bars.
  function pointed(event) {
    var line = event.target.closest && event.target.closest("svg.timeline");
    if (!line) return null;
    var box = line.getBoundingClientRect();
    var place = Math.floor((event.clientX - box.left) / box.width * line.viewBox.baseVal.width);
    return { line: line, told: line.dataset.told.split("\n")[place] || "" };
  }
  addEventListener("pointermove", function (event) {
    var at = pointed(event);
    if (at) at.line.parentNode.querySelector("output").textContent = at.told && "epoch " + at.told;
  });
  addEventListener("click", function (event) {
    var at = pointed(event);
    if (at && at.told) location.href = at.line.dataset.epochs + parseInt(at.told, 10);
  });
})();
