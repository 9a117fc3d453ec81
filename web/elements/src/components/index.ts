/** An element for each component of the catalog, and the modules that they build on. */

export { createComponents, createContext } from "../base/context.js";
export type { AnswerFile, ArpContext, ComponentFactory, Components, Translate } from "../base/context.js";
export { ComponentElement } from "../base/component_element.js";
export { ArpElement, define } from "../base/element.js";
export { icon } from "../base/icons.js";
export type { IconName } from "../base/icons.js";
export { copyText, fileName, saveFile } from "../base/clipboard.js";
export { copyButton, copyFrom, iconButton } from "../base/toolbar.js";
export { tabList } from "../base/tablist.js";
export { adoptStyles, STYLES } from "../style/sheet.js";
export { visible } from "../base/values.js";
export { imageSource, linkTarget } from "../base/url.js";
export { ArpCode } from "../code/code.js";
export { ArpMath } from "../markdown/math.js";
export { ArpProse } from "../markdown/prose.js";
export { ArpPicture } from "../base/picture.js";
export { loadComponents, renderComponent, renderComponents } from "./render.js";
export { ArpComponentElement } from "./component.js";
export { ArpOwn } from "./own.js";
export { ArpUnknown } from "./unknown.js";
export { ArpChoices } from "./choices.js";
export { ArpCodeBlock } from "./code_block.js";
export { ArpConfirm } from "./confirm.js";
export { ArpGroup, ArpSplit, ArpTabs } from "./layout.js";
export { ArpImage } from "./image.js";
export { ArpKeyValue } from "./key_value.js";
export { ArpMarkdown, ArpText } from "./text.js";
export { ArpProgress } from "./progress.js";
export { ArpStatusCard } from "./status_card.js";
export { ArpTextInput } from "./text_input.js";

export type { ArpChart } from "./chart/chart.js";
export type { ArpDiff } from "./diff/diff.js";
export type { ArpForm } from "./form/form.js";
export type { ArpProductCards } from "./product_cards.js";
export type { ArpSources } from "./sources.js";
export type { ArpTable } from "./table/table.js";
