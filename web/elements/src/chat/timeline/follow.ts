/**
 * Scrolling of a conversation: the view follows the end while the reader is there, and otherwise stays where it is.
 *
 * Theory of operation. There are two states. *Following*: whenever the content or the view changes its size, the view
 * moves to the end at once; a smooth scroll would be overtaken by the next text. *Reading*: the view does not move, and
 * the browser's scroll anchoring compensates for changes above it. (While following, anchoring is off: it would only
 * cost time.) One gesture upward ends following. Reaching the end again, in any way, resumes it. A click that opens or
 * closes something holds the view for two frames, so that the clicked element does not move away; then the view follows
 * if it is still at the end. A ResizeObserver reports sizes before the frame is painted.
 *
 * The last input of the reader is shown at the top of the view, and the answer fills the space below it. For this the
 * input has *room*: an invisible box (chat.css) that reaches from the input down by the height of the view. The end of
 * the content is then the position with the input at the top, and nothing scrolls before the answer has filled the
 * view. The room takes no space in the layout and stays until the next input, so nothing moves when the answer is
 * complete either.
 *
 * While the input is *kept* in view, only content that is being written may push it out at the top: text and tool calls
 * of a running turn that began within the view, since they are read as they appear. Content that arrives complete (a
 * chart, a table, a form, a whole answer) does not push the input out, and neither does the text after it: it would
 * scroll away what the reader has not seen yet. If such content does not fit, following ends, and the jump button
 * appears.
 */

/** Distance from the end that still counts as the end. */
const NEAR_PX = 4;
/** Controls that open, close or toggle something in place. */
const OPENERS = "summary, [aria-expanded], [aria-pressed]";
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);
/** Largest part of the view that the input takes. Only the end of a longer input is visible. */
const MOST_OF_VIEW = 0.5;
const ROOM = "--_arp-room";

export class Follow {
  #following = true;
  #top = 0;
  /** Whether something was just opened, and its size is not known yet. */
  #isHeld = false;
  /** Element of the last input; it has the room. */
  #lastInput: HTMLElement | null = null;
  /** Whether the last input is kept in view until an answer that is being written pushes it out. */
  #isKept = false;
  #hasRoom = false;
  /** Distance from the top of the view to the beginning of the input, in pixels; negative for a long input. */
  #inset = 0;
  /** Height of the view, in pixels. */
  #height = 0;
  /** Space above the first message, in pixels. */
  #padding = 0;
  readonly #scroller: HTMLElement;
  readonly #content: HTMLElement;
  readonly #changed: (following: boolean) => void;
  readonly #sizes: ResizeObserver;
  readonly #listening = new AbortController();

  /** @param changed Called whenever following begins or ends. */
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
    // A finger that moves down scrolls up. Touches shorter than `NEAR_PX` are taps.
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

  /** Scroll to the end, and follow from now on. */
  jump(): void {
    this.#isKept = false;
    this.#set(true);
    this.keep();
  }

  /**
   * Set the last input, and follow. `null` means that there is none.
   *
   * @param hasRoom Whether the input moves to the top of the view. Otherwise it stays where it is, but is still kept in
   *   view.
   */
  ask(message: HTMLElement | null, hasRoom = true): void {
    this.#isKept = message !== null;
    this.#hasRoom = hasRoom;
    this.#set(true);
    this.redrawn(message);
  }

  /** Scroll to an element that the reader should look at, and stop following, unless the element is in view. */
  show(element: HTMLElement): void {
    const [view, box] = [this.#scroller.getBoundingClientRect(), element.getBoundingClientRect()];
    if (box.top >= view.top && box.bottom <= view.bottom) return;
    this.#rest();
    element.scrollIntoView({ block: "center" });
  }

  /** Set the element that draws the last input now, and move the room to it. */
  redrawn(message: HTMLElement | null): void {
    this.#lastInput?.classList.remove("arp-asked");
    this.#lastInput = message;
    message?.classList.toggle("arp-asked", this.#hasRoom);
    this.#makeRoom();
    this.keep();
  }

  /** Scroll to the end if the view follows, but not past an input that is kept in view. */
  keep(): void {
    const { clientHeight } = this.#scroller;
    const isResized = clientHeight !== this.#height;
    if (isResized) {
      this.#height = clientHeight;
      this.#padding = Number.parseFloat(getComputedStyle(this.#content).paddingTop) || 0;
    }
    this.#isKept &&= this.#lastInput?.isConnected === true; // an element that was removed has no position to keep
    if (isResized || this.#isKept) this.#makeRoom();
    if (this.#isHeld || !(this.#following || this.#isKept)) return;
    let to = this.#scroller.scrollHeight - clientHeight;
    const top = this.#isKept ? this.#topOfLastInput() : Infinity;
    const fits = to <= top + NEAR_PX;
    if (!this.#following) {
      if (!fits) return;
      // Content that was too large for the view has shrunk or is gone. Without this, the jump button would stay.
      this.#set(true);
    } else if (!fits) {
      // If the view shrinks (by the keyboard of a phone), its end stays visible, and the input may leave at the top.
      if (isResized || this.#isWritten()) this.#isKept = false;
      else to = top;
    }
    this.#scroller.scrollTop = to;
    this.#top = this.#scroller.scrollTop; // the browser limits it, so the read value is compared with later scrolls
    // The reader stays at the input while there is more below: the jump button has to say so.
    if (!fits && this.#isKept && this.#hidesMore()) this.#set(false);
  }

  stop(): void {
    this.#sizes.disconnect();
    this.#listening.abort();
  }

  /** Set the room so that the end of the content is the position with the input at the top of the view. */
  #makeRoom(): void {
    const { offsetHeight = 0 } = this.#lastInput?.querySelector("article") ?? {};
    this.#inset = Math.min(this.#padding, this.#height * MOST_OF_VIEW - offsetHeight);
    const room = `${this.#height - this.#inset}px`;
    if (this.#lastInput?.style.getPropertyValue(ROOM) !== room) this.#lastInput?.style.setProperty(ROOM, room);
  }

  /** Return the scroll position with the input at the top of the view. */
  #topOfLastInput(): number {
    const { top = 0 } = this.#lastInput?.getBoundingClientRect() ?? {};
    return this.#scroller.scrollTop + top - this.#scroller.getBoundingClientRect().top - this.#inset;
  }

  /** Return whether the last part of the answer is being written and begins above the end of the view. */
  #isWritten(): boolean {
    // A component whose code is still loading has no height. The text after it seems to begin in the view but will move
    // down, and following it would scroll past the component before the reader has seen it.
    const waiting = this.#content.querySelectorAll("[data-written] .arp-reply :not(:defined)");
    const isLoading = [...waiting].some(
      ({ localName }) => localName.startsWith("arp-") && !customElements.get(localName),
    );
    if (isLoading) return false;
    return (
      (this.#lastBox("[data-written] .arp-reply > *")?.top ?? Infinity) < this.#scroller.getBoundingClientRect().bottom
    );
  }

  /** Return whether part of a message lies below the view. Buttons and space below the message do not count. */
  #hidesMore(): boolean {
    return (this.#lastBox("article")?.bottom ?? 0) > this.#scroller.getBoundingClientRect().bottom + NEAR_PX;
  }

  /** Return the box of the last matching element. */
  #lastBox(selector: string): DOMRect | undefined {
    return [...this.#content.querySelectorAll(selector)].at(-1)?.getBoundingClientRect();
  }

  /** Return the distance from the view to the end, in pixels. */
  #gap(): number {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Hold the view for two frames, while the opened element gets its size; then follow if the view is at the end. */
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

  /** Stop following after a gesture upward. The gesture is ignored if everything fits into the view. */
  #rest(): void {
    if (this.#scroller.scrollHeight <= this.#scroller.clientHeight + NEAR_PX) return;
    this.#isKept = false;
    this.#set(false);
  }

  #scrolled(): void {
    const top = this.#scroller.scrollTop;
    // `keep` scrolled to this position, not the reader: whether the input is kept must not change.
    if (this.#following && !this.#isHeld && top === this.#top) return;
    const isUpward = top < this.#top - 1; // less than a pixel is rounding
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

  /** Turn the browser's scroll anchoring off while following, else on. */
  #anchor(): void {
    this.#scroller.style.overflowAnchor = this.#following && !this.#isHeld ? "none" : "";
  }
}
