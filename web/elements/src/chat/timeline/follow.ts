/**
 * Keeps the newest in view while the reader is at the end, and never otherwise.
 *
 * Theory of operation. Two states. *Following*: whenever the content or the window changes its size,
 * the view goes to the end at once (a smooth scroll would be overtaken by the next text). One
 * gesture upward ends that, and so does opening something: what was clicked must not run away.
 * *Reading*, the view stays where it is: the browser's scroll anchoring holds what is read while
 * things above change; following, that would only cost time. Coming back to the end, by whatever way, follows again. Sizes are watched
 * by a ResizeObserver, which is called before the frame is painted.
 *
 * The message that the user sent last, the question here, is at the top of the view, and the answer
 * fills what is below. To that end it has *room*: it reaches at least as far down as the view does
 * (chat.css), so the end that is followed is where the question is at the top. Nothing scrolls before
 * the answer has filled the view. The room takes no place in the layout and stays until the next question,
 * so nothing moves when the answer is complete either.
 *
 * In a full view only what is being written (text, uses of tools, in a turn that runs) and began in the view
 * pushes the question out at the top: that is read as it comes. What comes as a whole (a chart, a table, a
 * form, an answer that is complete at once) does not, nor does the text after it: it would hide what nobody
 * has seen yet. Where it does not fit, following ends, and the button that leads to the newest shows.
 */

/** As near to the end counts as at it. */
const NEAR_PX = 4;
/** What opens, closes or turns something in its place. */
const OPENERS = "summary, [aria-expanded], [aria-pressed]";
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);
/** How much of the view a question takes at most; of a longer one the end shows. */
const MOST_OF_VIEW = 0.5;
const ROOM = "--_arp-room";

export class Follow {
  #following = true;
  #top = 0;
  /** Something was opened just now, and its size is not known yet. */
  #isHeld = false;
  /** The question that has room. */
  #lastInput: HTMLElement | null = null;
  /** Whether it is in view still, and only what is written may push it out. */
  #isKept = false;
  #hasRoom = false;
  /** How far below the top of the view the question begins, in pixels; of a long one, how far above. */
  #inset = 0;
  /** Of the view, in pixels. */
  #height = 0;
  /** Above the first message, in pixels. */
  #padding = 0;
  readonly #scroller: HTMLElement;
  readonly #content: HTMLElement;
  readonly #changed: (following: boolean) => void;
  readonly #sizes: ResizeObserver;
  readonly #listening = new AbortController();

  /** `changed` is called whenever following begins or ends. */
  constructor(scroller: HTMLElement, content: HTMLElement, changed: (following: boolean) => void) {
    this.#scroller = scroller;
    this.#content = content;
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

  /** Goes to the end and follows from now on. */
  jump(): void {
    this.#isKept = false;
    this.#set(true);
    this.keep();
  }

  /**
   * A message of the user is the question from now on; `null`: none is. It follows then.
   *
   * @param hasRoom Whether it goes to the top of the view. Without, it stays where it is, and is kept in view all the same.
   */
  ask(message: HTMLElement | null, hasRoom = true): void {
    this.#isKept = message !== null;
    this.#hasRoom = hasRoom;
    this.#set(true);
    this.redrawn(message);
  }

  /** Brings something into view that is to be looked at now, unless it is; nothing is followed then. */
  show(element: HTMLElement): void {
    const [view, box] = [this.#scroller.getBoundingClientRect(), element.getBoundingClientRect()];
    if (box.top >= view.top && box.bottom <= view.bottom) return;
    this.#rest();
    element.scrollIntoView({ block: "center" });
  }

  /** The question is drawn by another element now. */
  redrawn(message: HTMLElement | null): void {
    this.#lastInput?.classList.remove("arp-asked");
    this.#lastInput = message;
    message?.classList.toggle("arp-asked", this.#hasRoom);
    this.#makeRoom();
    this.keep();
  }

  /** Goes to the end, if it follows, but not past a question that is to be kept in view. */
  keep(): void {
    const { clientHeight } = this.#scroller;
    const isResized = clientHeight !== this.#height;
    if (isResized) {
      this.#height = clientHeight;
      this.#padding = Number.parseFloat(getComputedStyle(this.#content).paddingTop) || 0;
    }
    this.#isKept &&= this.#lastInput?.isConnected === true;
    if (isResized || this.#isKept) this.#makeRoom();
    if (this.#isHeld || !(this.#following || this.#isKept)) return;
    let to = this.#scroller.scrollHeight - clientHeight;
    const top = this.#isKept ? this.#topOfLastInput() : Infinity;
    const fits = to <= top + NEAR_PX;
    if (!this.#following) {
      if (!fits) return;
      this.#set(true); // there was more than the view holds, and there no longer is
    } else if (!fits) {
      // Where the view gets smaller, as by the keyboard of a phone, what is at its end stays in it.
      if (isResized || this.#isWritten()) this.#isKept = false;
      else to = top;
    }
    this.#scroller.scrollTop = to;
    this.#top = this.#scroller.scrollTop;
    if (!fits && this.#isKept && this.#hidesMore()) this.#set(false);
  }

  stop(): void {
    this.#sizes.disconnect();
    this.#listening.abort();
  }

  /** The question reaches as far down as the view does when it is at its top. */
  #makeRoom(): void {
    const { offsetHeight = 0 } = this.#lastInput?.querySelector("article") ?? {};
    this.#inset = Math.min(this.#padding, this.#height * MOST_OF_VIEW - offsetHeight);
    const room = `${this.#height - this.#inset}px`;
    if (this.#lastInput?.style.getPropertyValue(ROOM) !== room) this.#lastInput?.style.setProperty(ROOM, room);
  }

  /** Where the view is when the question is at its top. */
  #topOfLastInput(): number {
    const { top = 0 } = this.#lastInput?.getBoundingClientRect() ?? {};
    return this.#scroller.scrollTop + top - this.#scroller.getBoundingClientRect().top - this.#inset;
  }

  /** Whether what comes now is being written, not there at once, and is read already: its beginning is in view. */
  #isWritten(): boolean {
    // A component that is still being loaded has no height: what comes after it only seems to begin in the view.
    const waiting = this.#content.querySelectorAll("[data-written] .arp-reply :not(:defined)");
    const isLoading = [...waiting].some(
      ({ localName }) => localName.startsWith("arp-") && !customElements.get(localName),
    );
    if (isLoading) return false;
    return (
      (this.#last("[data-written] .arp-reply > *")?.top ?? Infinity) < this.#scroller.getBoundingClientRect().bottom
    );
  }

  /** Whether something of what was sent lies below the view; the buttons and the space under it do not count. */
  #hidesMore(): boolean {
    return (this.#last("article")?.bottom ?? 0) > this.#scroller.getBoundingClientRect().bottom + NEAR_PX;
  }

  /** Where the last of these stands. */
  #last(selector: string): DOMRect | undefined {
    return [...this.#content.querySelectorAll(selector)].at(-1)?.getBoundingClientRect();
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
    if (this.#scroller.scrollHeight <= this.#scroller.clientHeight + NEAR_PX) return;
    this.#isKept = false;
    this.#set(false);
  }

  #scrolled(): void {
    const top = this.#scroller.scrollTop;
    if (this.#following && !this.#isHeld && top === this.#top) return; // it was us
    const isUpward = top < this.#top - 1;
    this.#top = top;
    if (this.#gap() <= NEAR_PX) {
      this.#isKept = this.#lastInput?.isConnected === true && top <= this.#topOfLastInput() + NEAR_PX;
      this.#set(true);
    } else if (isUpward) {
      this.#isKept = false;
      this.#set(false);
    }
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
