/** Settings of a chat, in a dialog. They take effect when they are saved. Source: http.md, "settings". */

import { ArpError, type ArpClient, type Component, type Json, type JsonObject } from "@agent-rendering/core";
import { createContext, type ArpContext } from "@agent-rendering/elements/chat";
import { loadComponents, renderComponent } from "@agent-rendering/elements/components";
import { html, LitElement, nothing, type TemplateResult } from "lit";
import { keyed } from "lit/directives/keyed.js";

import { openDialog } from "./dialogs.js";

const NOT_FOUND = 404;

/**
 * Open the settings of a client's session.
 *
 * @returns Whether the app has settings. If not, the command `settings` is one of the app itself.
 * @throws ArpError The settings cannot be read.
 */
export async function showSettings(client: ArpClient, context: ArpContext): Promise<boolean> {
  const panel = new PageSessionSettings(client, context);
  try {
    await Promise.all([panel.load(), loadComponents("form")]);
  } catch (error) {
    if (error instanceof ArpError && error.status === NOT_FOUND) return false;
    throw error;
  }
  openDialog(context.t("chatSettings"), context, panel, "page-session-settings");
  await panel.focusFirst();
  return true;
}

/** `<page-session-settings>`: a form that shows changes made elsewhere, until the user edits it. */
class PageSessionSettings extends LitElement {
  static override properties = { form: { state: true }, fault: { state: true }, isOld: { state: true } };

  /** The form. New values come with a new id, so that they replace the entered text. */
  declare protected form: Component | null;
  /** Error text if the server refused the values; "" if not. */
  declare protected fault: string;
  /** Whether the settings were changed elsewhere while the user was editing. */
  declare protected isOld: boolean;
  readonly #client: ArpClient;
  readonly #session: string | null;
  readonly #context: ArpContext;
  readonly #announce: (text: string) => void;
  #known = "";
  #drawn = 0;
  #isTouched = false;
  #stop: (() => void) | null = null;

  constructor(client: ArpClient, { t, locale, theme, announce }: ArpContext) {
    super();
    this.#client = client;
    this.#session = client.sessionId;
    this.#announce = announce;
    // A context without a client: the form must not send its values to the agent as an answer.
    this.#context = createContext({ t, locale, theme, answer: (_, value) => void this.#save(value) });
    this.form = null;
    this.fault = "";
    this.isOld = false;
    this.addEventListener("input", () => (this.#isTouched = true));
  }

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const reload = () => void this.load().catch(() => undefined); // on a failure the form stays as it is
    this.#stop = this.#client.sessions.watch({ opened: reload, chat: ({ id }) => id === this.#session && reload() });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stop?.();
  }

  /** Load the current settings. */
  async load(): Promise<void> {
    const form = (await (await this.#ask()).json()) as Component;
    const known = JSON.stringify(form.props.fields);
    if (known === this.#known) return;
    this.#known = known;
    // Drawing the form again would discard what the user has typed.
    if (this.#isTouched) this.isOld = true;
    else this.#draw(form);
  }

  /** Focus a field, by default the first one, unless that would open an on-screen keyboard. */
  async focusFirst(name = ""): Promise<void> {
    await this.updateComplete;
    const form = this.querySelector<LitElement>("arp-form");
    await form?.updateComplete;
    const wanted = name === "" ? "" : `[name="${CSS.escape(name)}"]`;
    if (wanted === "" && matchMedia("(pointer: coarse)").matches) return;
    form?.querySelector<HTMLElement>(`:is(input, select, textarea)${wanted}`)?.focus();
  }

  #ask(init?: RequestInit): Promise<Response> {
    return this.#client.sessions.request(`/_api/settings/${encodeURIComponent(this.#session ?? "")}`, init);
  }

  #draw({ props, ...form }: Component): void {
    const { title: _, ...shown } = props; // the dialog has the title
    this.#drawn += 1;
    this.form = { ...form, id: `settings-${this.#drawn}`, props: { ...shown, submit_label: this.#context.t("save") } };
  }

  async #save(value: Json): Promise<void> {
    const { t } = this.#context;
    const { form } = this;
    try {
      await this.#ask({
        method: "PUT",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ fields: emptied(form, value) }),
      });
    } catch (error) {
      const { payload } = error instanceof ArpError ? error : new ArpError({ error: String(error), code: 0 });
      this.fault = payload.code === 0 ? t("settingsFailed") : payload.error;
      if (form !== null) this.#draw(filled(form, emptied(form, value)));
      await this.focusFirst(/^fields\.(.+)$/.exec(payload.detail ?? "")?.[1]);
      return;
    }
    this.closest("dialog")?.close();
    this.#announce(t("settingsSaved"));
  }

  protected override render(): TemplateResult {
    const { form, fault, isOld } = this;
    const { t } = this.#context;
    return html`${fault === "" ? nothing : html`<p class="arp-note arp-error" role="alert">${fault}</p>`}
      ${isOld ? html`<p class="arp-note" role="status">${t("settingsChanged")}</p>` : nothing}
      ${form === null ? nothing : keyed(form.id, renderComponent(form, this.#context))}`;
  }
}

/** Return the entered values, with null for empty fields: a field that is left out would keep its old value. */
function emptied(form: Component | null, value: Json): JsonObject {
  const names = ((form?.props.fields ?? []) as JsonObject[]).map(({ name }) => [String(name), null]);
  return { ...Object.fromEntries(names), ...(value as JsonObject) };
}

/** Return a form with the entered values. */
function filled({ props, ...form }: Component, value: Json): Component {
  const entered = value as JsonObject;
  const fields = (props.fields as JsonObject[]).map((field) => {
    const name = String(field.name);
    return Object.hasOwn(entered, name) ? { ...field, value: entered[name] ?? null } : field;
  });
  return { ...form, props: { ...props, fields } };
}

customElements.define("page-session-settings", PageSessionSettings);
