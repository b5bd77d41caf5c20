(function () {
  // Shows the value of the nearest mark within 24 pixels of the pointer. Without this script the tables hold the values.
  var tip = document.createElement("div");
  tip.id = "tip";
  document.body.appendChild(tip);
  document.addEventListener("pointermove", function (event) {
    var drawing = event.target.closest && event.target.closest("svg");
    var best = null, near = 24;
    if (drawing) drawing.querySelectorAll("[data-t]").forEach(function (mark) {
      var box = mark.getBoundingClientRect();
      var x = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
      var y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
      var distance = Math.hypot(x, y);
      if (distance < near) { near = distance; best = mark; }
    });
    tip.style.display = best ? "block" : "none";
    if (!best) return;
    tip.textContent = best.getAttribute("data-t");
    var left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  });
})();
