/**
 * How input components answer: an answer is an input in the outbox that names its component, and at
 * most one is on its way at a time. A refusal is kept until the next try, so that the question can
 * say it.
 */

/** What the views of input components know of the world. */
export class Answers {
  #refusals = new Map();

  /** `page` submits inputs, tells whether it is online, and takes the focus. */
  constructor(page, outbox) {
    this.page = page;
    this.outbox = outbox;
  }

  /** The answer to this component that is on its way. */
  pending(componentId) {
    const item = this.outbox.answerTo(componentId);
    return item?.phase === "refused" ? undefined : item;
  }

  /** The error payload of the last answer to this component, if that was refused. */
  refusal(componentId) {
    return this.#refusals.get(componentId);
  }

  /** Sends an answer, unless one is on its way already. */
  send(component, inputType, data, files = []) {
    if (this.pending(component.id)) return;
    this.#refusals.delete(component.id);
    this.page.submit({ input_type: inputType, data, source_component: component.id }, files);
  }

  /** Notes that an answer was refused: the question is open again and says why. */
  refuse(componentId, payload) {
    this.#refusals.set(componentId, payload);
  }

  online() {
    return this.page.online();
  }

  focusComposer() {
    this.page.focusComposer();
  }
}
