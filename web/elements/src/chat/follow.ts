/**
 * Keeps the newest in view while the reader is at the bottom, and never otherwise.
 *
 * Theory of operation. Two states. *Following*: whenever the content or the window changes its size,
 * the view goes to the bottom at once (a smooth scroll would be overtaken by the next text). One
 * gesture upward ends that, and so does opening something: what was clicked must not run away.
 * *Reading*, the view stays where it is: the browser's scroll anchoring holds what is read while
 * things above change; following, that would only cost time. Coming back to the bottom, by whatever way, follows again. Sizes are watched
 * by a ResizeObserver, which is told before the frame is painted.
 */

/** As near to the bottom counts as at it. */
const NEAR_PX = 4;
/** What opens, closes or turns something in its place. */
const OPENERS = "summary, [aria-expanded], [aria-pressed]";
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);

export class Follow {
  #following = true;
  #top = 0;
  /** Something was opened just now, and its size is not known yet. */
  #isHeld = false;
  readonly #scroller: HTMLElement;
  readonly #changed: (following: boolean) => void;
  readonly #sizes: ResizeObserver;
  readonly #listening = new AbortController();

  /** `changed` is told whenever following begins or ends. */
  constructor(scroller: HTMLElement, content: HTMLElement, changed: (following: boolean) => void) {
    this.#scroller = scroller;
    this.#changed = changed;
    this.#anchor();
    this.#sizes = new ResizeObserver(() => this.keep());
    this.#sizes.observe(content);
    this.#sizes.observe(scroller);
    const options = { passive: true, signal: this.#listening.signal };
    scroller.addEventListener("scroll", () => this.#scrolled(), options);
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#rest(), options);
    scroller.addEventListener("keydown", ({ key }) => UP_KEYS.has(key) && this.#rest(), options);
    content.addEventListener("click", ({ target }) => (target as Element).closest(OPENERS) && this.#hold(), options);
    let finger = 0;
    scroller.addEventListener("touchstart", ({ touches }) => (finger = touches[0]?.clientY ?? 0), options);
    scroller.addEventListener(
      "touchmove",
      ({ touches }) => (touches[0]?.clientY ?? 0) > finger + NEAR_PX && this.#rest(),
      options,
    );
  }

  get following(): boolean {
    return this.#following;
  }

  /** Goes to the bottom and follows from now on. */
  jump(): void {
    this.#set(true);
    this.keep();
  }

  /** Goes to the bottom, if it follows. */
  keep(): void {
    if (!this.#following || this.#isHeld) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }

  stop(): void {
    this.#sizes.disconnect();
    this.#listening.abort();
  }

  #gap(): number {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Stays for two frames, in which what was opened takes its place; then it follows if it is at the bottom. */
  #hold(): void {
    if (!this.#following || this.#isHeld) return;
    this.#isHeld = true;
    this.#anchor();
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        this.#isHeld = false;
        this.#set(this.#gap() <= NEAR_PX);
        this.#anchor();
      }),
    );
  }

  /** A gesture upward: without anything to scroll it means nothing. */
  #rest(): void {
    if (this.#scroller.scrollHeight > this.#scroller.clientHeight + NEAR_PX) this.#set(false);
  }

  #scrolled(): void {
    const top = this.#scroller.scrollTop;
    if (this.#following && !this.#isHeld && top === this.#top) return; // it was us
    const isUpward = top < this.#top - 1;
    this.#top = top;
    if (this.#gap() <= NEAR_PX) this.#set(true);
    else if (isUpward) this.#set(false);
  }

  #set(following: boolean): void {
    if (this.#following === following) return;
    this.#following = following;
    this.#anchor();
    this.#changed(following);
  }

  #anchor(): void {
    this.#scroller.style.overflowAnchor = this.#following && !this.#isHeld ? "none" : "";
  }
}
