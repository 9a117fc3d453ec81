// Runs inside the document before anything is shown. It applies the stored theme, direction and panel, and serves the
// static message box until the main script is loaded, which starts after the first picture.
(() => {
  const root = document.documentElement;
  const box = () => document.querySelector(".page-early textarea");
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem("arp.settings")) || {};
  } catch {}
  const { theme, locale, panel } = kept;
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  const known = (locale ? [locale] : navigator.languages).find((tag) => /^(en|ar|de|es|fr|ja|zh)\b/i.test(tag)) || "en";
  if (/^ar/i.test(known)) root.dir = "rtl";
  if (panel === false) root.dataset.panel = "off";
  addEventListener("keydown", (event) => {
    const { target, key, shiftKey, altKey, isComposing, keyCode } = event;
    if (target !== box() || key !== "Enter" || shiftKey || altKey || isComposing || keyCode === 229) return;
    event.preventDefault();
    target.dataset.sent = "";
  });
  const begin = () => {
    // The focus makes typed text go into the box from the first picture on. On touch screens it would open a keyboard.
    if (!matchMedia("(pointer: coarse)").matches) box()?.focus();
    import("./_static/%SCRIPT%");
  };
  let hasBegun = false;
  const once = () => {
    if (!hasBegun) begin();
    hasBegun = true;
  };
  document.addEventListener(
    "readystatechange",
    () => {
      if (document.hidden) return once(); // a hidden tab has no animation frames
      requestAnimationFrame(() => setTimeout(once));
      setTimeout(once, 200);
    },
    { once: true },
  );
})();
