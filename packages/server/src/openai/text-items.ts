import type { Citation } from 'millrace';
import type { PartOf } from '../parts/part.js';
import {
  endItem,
  type OutputItem,
  type OutputItems,
  placeOfItem,
  type Unnumbered,
} from './output-items.js';
import { annotationOf, outputText, summaryText } from './response-fields.js';

/** The text and the thoughts of a response, as items of its output. */
export interface TextItems {
  start(part: Pick<PartOf<'blockDelta'>, 'kind' | 'messageId'>): readonly Unnumbered[];
  delta(delta: string): readonly Unnumbered[];
  /** Ends the block, but not its item, which the agent may still discard. */
  end(): readonly Unnumbered[];
  /** Adds a source. By default, it supports the text since the source before. */
  source(citation: Citation): readonly Unnumbered[];
  /** Ends the item of a block that has ended. */
  settle(): readonly Unnumbered[];
  /** Forgets the block that has ended: its message is discarded. */
  discard(): void;
  /** Adds a whole text. */
  add(text: string): readonly Unnumbered[];
}

interface TextItem {
  readonly item: OutputItem;
  readonly form: Form;
  readonly deltas: string[];
  readonly annotations: object[];
  /** The end of the text that an annotation supports, in characters. */
  citedUntil: number;
}

export const createTextItems = (output: OutputItems): TextItems => {
  let open: TextItem | undefined;
  /** Has ended, but may still be discarded. */
  let waiting: TextItem | undefined;

  const settle = (): readonly Unnumbered[] => {
    if (waiting === undefined) return [];
    const { item, form } = waiting;
    const part = wholePart(waiting);
    waiting = undefined;
    return [endItem(item, { status: 'completed', [form.field]: [part] })];
  };
  const start: TextItems['start'] = ({ kind, messageId }) => {
    const before = settle();
    const form = forms[kind];
    const [item, added] = output.add(form.prefix, messageId, form.item);
    open = { item, form, deltas: [], annotations: [], citedUntil: 0 };
    const part = form.partOf('', []);
    return [...before, added, eventOf(open, { type: `${form.partEvent}.added`, part })];
  };
  const delta: TextItems['delta'] = (text) => {
    if (open === undefined) return [];
    const { deltas, form } = open;
    deltas.push(text);
    return [eventOf(open, { type: `${form.textEvent}.delta`, delta: text, ...form.textFields })];
  };
  const end: TextItems['end'] = () => {
    if (open === undefined) return [];
    waiting = open;
    open = undefined;
    const { form } = waiting;
    const text = textOf(waiting);
    return [
      eventOf(waiting, { type: `${form.textEvent}.done`, text, ...form.textFields }),
      eventOf(waiting, { type: `${form.partEvent}.done`, part: wholePart(waiting) }),
    ];
  };
  return {
    start,
    delta,
    end,
    settle,
    source: (citation) => {
      const cited = open ?? waiting;
      return cited?.form === forms.text ? annotated(cited, citation) : [];
    },
    discard: () => {
      waiting = undefined;
    },
    add: (text) =>
      text === ''
        ? []
        : [...start({ kind: 'text', messageId: '' }), ...delta(text), ...end(), ...settle()],
  };
};

/** The difference between items of text and items of thoughts. */
interface Form {
  /** Returns the prefix of the ids, after the kind of the item. */
  readonly prefix: string;
  readonly item: object;
  /** The field of the item that has the whole text. */
  readonly field: string;
  readonly textEvent: string;
  readonly partEvent: string;
  /** In each event. */
  readonly index: object;
  /** In each event with text. */
  readonly textFields: object;
  readonly partOf: (text: string, annotations: readonly object[]) => object;
}

const forms: Readonly<Record<PartOf<'blockDelta'>['kind'], Form>> = {
  text: {
    prefix: 'msg',
    item: { type: 'message', role: 'assistant', status: 'in_progress', content: [] },
    field: 'content',
    textEvent: 'response.output_text',
    partEvent: 'response.content_part',
    index: { content_index: 0 },
    textFields: { logprobs: [] },
    partOf: outputText,
  },
  thinking: {
    prefix: 'rs',
    item: { type: 'reasoning', status: 'in_progress', summary: [] },
    field: 'summary',
    textEvent: 'response.reasoning_summary_text',
    partEvent: 'response.reasoning_summary_part',
    index: { summary_index: 0 },
    textFields: {},
    partOf: summaryText,
  },
};

const textOf = ({ deltas }: TextItem): string => deltas.join('');

const wholePart = (it: TextItem): object => it.form.partOf(textOf(it), it.annotations);

const annotated = (cited: TextItem, citation: Citation): readonly Unnumbered[] => {
  const to = textOf(cited).length;
  const annotation = annotationOf(citation, { from: cited.citedUntil, to });
  if (annotation === undefined) return [];
  cited.citedUntil = to;
  const annotation_index = cited.annotations.push(annotation) - 1;
  const type = 'response.output_text.annotation.added';
  return [eventOf(cited, { type, annotation_index, annotation })];
};

const eventOf = ({ item, form }: TextItem, event: Unnumbered): Unnumbered => ({
  ...event,
  ...placeOfItem(item),
  ...form.index,
  ...(item.isOmitted && { isOmitted: true }),
});
