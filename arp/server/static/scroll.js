/**
 * Follows the newest line only while the reader is there: one upward move stops it, coming back to
 * the bottom starts it again.
 */

const NEAR_PX = 48;

/** Keeps one scrolling box at its end while following. */
export class Follow {
  following = true;
  #box;
  #onChange;
  #top = 0;

  /** `content` is watched for growth; `onChange()` is told when following starts or stops. */
  constructor(box, content, onChange) {
    this.#box = box;
    this.#onChange = onChange;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    box.addEventListener("wheel", (event) => event.deltaY < 0 && this.#away(), { passive: true });
    const watch = new ResizeObserver(() => this.keep());
    watch.observe(content);
    watch.observe(box);
  }

  /** Goes to the end if following. */
  keep() {
    if (this.following) this.#box.scrollTop = this.#box.scrollHeight;
    this.#onChange();
  }

  /** Goes to the end and follows from now on. */
  jump() {
    this.following = true;
    this.keep();
  }

  /** Whether there is anything below what shows. */
  get atEnd() {
    return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight <= NEAR_PX;
  }

  #scrolled() {
    const top = this.#box.scrollTop;
    if (this.atEnd) this.following = true;
    else if (top < this.#top) this.following = false;
    this.#top = top;
    this.#onChange();
  }

  #away() {
    if (this.#box.scrollHeight > this.#box.clientHeight) this.following = false;
  }
}
