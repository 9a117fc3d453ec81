// Runs before anything shows, inside of the document: theme, direction and panel as the reader chose
// them, and the message box that stands there until the script has come, which begins when this has been shown.
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
    // What is typed from the first picture on stands in it, unless a finger would bring up a keyboard.
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
      if (document.hidden) return once(); // no frame comes
      requestAnimationFrame(() => setTimeout(once));
      setTimeout(once, 200);
    },
    { once: true },
  );
})();
