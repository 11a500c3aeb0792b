import type { Finish, ModelChunk } from 'millrace';
import { type JsonRecord, textAt } from '@millrace/wire';
import { fieldsOf, textIn } from './fields.js';
import {
  absorb,
  callIdentity,
  callPart,
  callStart,
  createItem,
  customStart,
  escaped,
  isAnnounced,
  isCut,
  isRefused,
  type OutputItem,
  partOf,
  type Place,
  rank,
  textStart,
  type Unit,
  unitsOf,
} from './responses-items.js';
import type { ReaderSource } from './wire-model.js';

type Chunks = readonly ModelChunk[];

/** The part of a unit that was emitted. */
interface Sent {
  readonly item: OutputItem;
  readonly key: string;
  readonly kind: Unit['kind'];
  readonly identity: string;
  readonly texts: string[];
  ends: string[];
}

/**
 * The output of one response: what is known of each item, and what of it was emitted. Deltas are emitted as they come; at
 * the end, the emitted blocks are compared with the final ones, once. What is missing is added, and a contradiction
 * restarts the message.
 */
export class Ledger {
  readonly #source: ReaderSource;
  readonly #items: OutputItem[] = [];
  readonly #byPlace = new Map<string, OutputItem>();
  #sent: Sent[] = [];
  /** The item of the last delta: most deltas continue it. */
  #latest: { type: string; id: unknown; index: unknown; item: OutputItem } | undefined;
  /** The part of a summary that began last, for deltas that do not name theirs. */
  summaryIndex: unknown;
  /** A block was continued after another one had begun. */
  #isTorn = false;

  constructor(source: ReaderSource) {
    this.#source = source;
  }

  /** The item that an event belongs to: by its ID, otherwise by its place, otherwise the last one of its type. */
  itemOf(type: string, id: unknown, index: unknown): OutputItem {
    const latest = this.#latest;
    if (latest?.type === type && latest.id === id && latest.index === index) return latest.item;
    const item = this.#itemAt(type, id, index);
    this.#latest = { type, id, index, item };
    return item;
  }

  #itemAt(type: string, id: unknown, index: unknown): OutputItem {
    const named = textIn(id) === '' ? undefined : this.#named(id);
    if (named?.type === type) return named;
    if (typeof index !== 'number') {
      return this.#items.findLast((item) => item.type === type) ?? this.#create(type, index);
    }
    return this.#byPlace.get(placeOf(type, index)) ?? this.#create(type, index);
  }

  #named(id: unknown): OutputItem | undefined {
    return this.#items.find(({ fields }) => fields['id'] === id);
  }

  /** An item is announced. */
  added(item: unknown, index: unknown): Chunks {
    const type = textAt(item, 'type');
    if (type === '') return [];
    this.#latest = undefined;
    const known = this.#find(item, index, false) ?? this.#create(type, index);
    absorb(known, item, rank.streamed);
    return this.#isStreamed(known) && isAnnounced(known) ? this.catchUp(known) : [];
  }

  /** An item is complete. */
  done(item: unknown, index: unknown): Chunks {
    const type = textAt(item, 'type');
    if (type === '') return [];
    this.#latest = undefined;
    const known = this.#find(item, index, true) ?? this.#create(type, index);
    absorb(known, item, rank.item);
    return this.catchUp(known);
  }

  /** Emits a delta of an item, unless the complete value is already known. */
  delta(item: OutputItem, key: string, delta: string): Chunks {
    const part = partOf(item, key);
    if (part.rank > rank.streamed || delta === '') return [];
    const previous = item.type === 'reasoning' && part.deltas.length === 0 ? '\n\n' : '';
    part.deltas.push(delta);
    if (item.type === 'message') return this.#send(item, key, 'text', delta);
    if (item.type === 'reasoning') return this.#send(item, 'thinking', 'thinking', delta, previous);
    // The arguments of a call without a name are held back: the item that names it emits them.
    if (!isAnnounced(item)) return [];
    if (item.type !== 'custom_tool_call') return this.#send(item, callPart, 'call', delta);
    const opening = part.deltas.length === 1 ? customStart(item, this.#source) : '';
    return this.#send(item, callPart, 'call', opening + escaped(delta));
  }

  /** Emits the missing rest of an item, as far as it continues what was emitted. */
  catchUp(item: OutputItem): Chunks {
    const place = { followsText: this.#followsText(item), isRun: false, isFinal: false };
    return unitsOf(item, this.#source, place).flatMap((unit) => this.#advance(item, unit) ?? []);
  }

  /** Emits what is missing of the final output, or all of it again. Returns how the items say that it ends. */
  conclude(output: readonly unknown[]): { readonly chunks: Chunks; readonly finish: Finish } {
    const items = this.#finalItems(output);
    const finish = items.some(isRefused) ? 'refusal' : items.some(isCut) ? 'length' : 'stop';
    const units = finalUnits(items, this.#source);
    const isInOrder =
      !this.#isTorn &&
      this.#sent.every((sent, index) => {
        const expected = units[index];
        return expected?.item === sent.item && expected.unit.key === sent.key;
      });
    const missing = isInOrder ? this.#missing(units) : undefined;
    if (missing !== undefined) return { chunks: missing, finish };
    this.#sent = [];
    const all = units.flatMap(({ item, unit }) => this.#advance(item, unit) ?? []);
    const why = 'The end of the response contradicts what was streamed.';
    return { chunks: [{ type: 'restart', why, isSameRequest: true }, ...all], finish };
  }

  #missing(units: ReturnType<typeof finalUnits>): Chunks | undefined {
    const chunks: ModelChunk[] = [];
    for (const { item, unit } of units) {
      const more = this.#advance(item, unit);
      if (more === undefined) return undefined;
      chunks.push(...more);
    }
    return chunks;
  }

  /** Emits the rest of a unit. Returns `undefined` if what was emitted contradicts it. */
  #advance(item: OutputItem, unit: Unit): Chunks | undefined {
    const { key, kind, text, start, ends } = unit;
    if (kind === 'text' && text === '' && ends.length === 0) return [];
    const sent = this.#sent.find((it) => it.item === item && it.key === key);
    if (sent === undefined) {
      if (kind === 'thinking' && text === '' && ends.length === 0) return [];
      if (kind === 'call' && start.length === 0) return [];
      this.#open(item, unit, text === '' ? [] : [text], ends);
      return opened(item, unit);
    }
    if (unit.identity !== sent.identity) return undefined;
    const emitted = joined(sent.texts);
    const isOpen = sent === this.#sent.at(-1) || kind === 'call';
    if (!text.startsWith(emitted) || (!isOpen && text.length > emitted.length)) return undefined;
    const isKnown =
      kind !== 'text' || sent.ends.every((end, index) => JSON.stringify(ends[index]) === end);
    const isComplete = ends.length === sent.ends.length;
    // A later block would separate the end from the block that it belongs to.
    if (!isKnown || (!isComplete && !isOpen)) return undefined;
    const rest = text.slice(emitted.length);
    const more = ends.slice(sent.ends.length);
    if (rest !== '' && sent.ends.length > 0 && kind === 'thinking') return undefined;
    if (rest !== '') sent.texts.push(rest);
    sent.ends.push(...more.map((end) => JSON.stringify(end)));
    return [...textOf(item, kind, rest), ...more];
  }

  #send(item: OutputItem, key: string, kind: Unit['kind'], delta: string, separator = ''): Chunks {
    const last = this.#sent.at(-1);
    const open =
      last?.item === item && last.key === key
        ? last
        : this.#sent.find((it) => it.item === item && it.key === key);
    if (open === undefined) {
      const start = this.#startOf(item, kind);
      this.#open(item, { key, kind, identity: identityOf(item, kind, start) }, [delta]);
      return [...start, ...textOf(item, kind, delta)];
    }
    if (open !== last && kind !== 'call') this.#isTorn = true;
    open.texts.push(separator + delta);
    return textOf(item, kind, separator + delta);
  }

  #startOf(item: OutputItem, kind: Unit['kind']): Chunks {
    if (kind === 'call') return [callStart(item, this.#source)];
    if (kind !== 'text') return [];
    const isNext = this.#sent.some((it) => it.item === item);
    return textStart(item, !isNext && this.#followsText(item), isNext);
  }

  #open(
    item: OutputItem,
    { key, kind, identity }: Pick<Unit, 'key' | 'kind' | 'identity'>,
    texts: string[],
    ends: Chunks = [],
  ): void {
    this.#sent.push({
      item,
      key,
      kind,
      identity,
      texts,
      ends: ends.map((end) => JSON.stringify(end)),
    });
  }

  #followsText(item: OutputItem): boolean {
    for (const sent of this.#sent) {
      if (sent.item === item) return false;
      if (sent.kind === 'text') return true;
    }
    return false;
  }

  #isStreamed({ type }: OutputItem): boolean {
    return type === 'function_call' || type === 'custom_tool_call';
  }

  #create(type: string, index: unknown): OutputItem {
    const isTaken = this.#items.some(({ callIndex }) => callIndex === index);
    const callIndex =
      typeof index === 'number' && !isTaken ? index : firstFree + this.#items.length;
    const item = createItem(type, index, callIndex);
    this.#items.push(item);
    if (typeof index === 'number') this.#byPlace.set(placeOf(type, index), item);
    return item;
  }

  /** The known item of an event, unless that is about another one at the same place. */
  #find(given: unknown, index: unknown, isDone: boolean): OutputItem | undefined {
    const [type, id, callId] = [
      textAt(given, 'type'),
      textAt(given, 'id'),
      textAt(given, 'call_id'),
    ];
    const named = id === '' ? undefined : this.#named(id);
    if (named?.type === type && isSameCall(named, callId)) return named;
    const placed =
      typeof index === 'number'
        ? (this.#byPlace.get(placeOf(type, index)) ??
          this.#items.find((item) => item.type === type && typeof item.index !== 'number'))
        : this.#items.findLast((item) => item.type === type && item.rank < rank.item);
    if (placed === undefined || !isSameCall(placed, callId)) return undefined;
    const isOther = id !== '' && textIn(placed.fields['id']) !== '';
    // Some servers change the ID of an item between its events.
    return isOther && (!isDone || placed.rank >= rank.item) ? undefined : placed;
  }

  /** The items of the completed response. What it leaves out counts if the vendor had completed it. */
  #finalItems(output: readonly unknown[]): readonly OutputItem[] {
    const known = [...this.#items];
    const seen: OutputItem[] = [];
    const listed = output.flatMap((given, index) => {
      if (textAt(given, 'type') === '' || seen.some((item) => isRepeated(item, given))) return [];
      const item = this.#match(known, given, index) ?? this.#create(textAt(given, 'type'), index);
      known.splice(0, known.length, ...known.filter((it) => it !== item));
      absorb(item, given, rank.response);
      seen.push(item);
      return [item];
    });
    const others = known.filter(
      (item) =>
        !this.#isReplaced(item) &&
        (listed.length === 0 || isSettled(item) || !this.#isStreamed(item)),
    );
    if (listed.length === 0) return others.sort(byIndex);
    return others.reduce<readonly OutputItem[]>((items, item) => {
      const next = items.findIndex((it) => byIndex(it, item) > 0);
      return next === -1 ? [...items, item] : items.toSpliced(next, 0, item);
    }, listed);
  }

  /** Whether a call is another one by its end: a later item has its ID. Items that a server gives one ID are each completed. */
  #isReplaced(item: OutputItem): boolean {
    const { type, fields, rank: own } = item;
    return (
      this.#isStreamed(item) &&
      textIn(fields['id']) !== '' &&
      this.#items.some(
        (it) => it.type === type && it.fields['id'] === fields['id'] && it.rank > own,
      )
    );
  }

  #match(known: readonly OutputItem[], given: unknown, index: number): OutputItem | undefined {
    const [type, id, callId] = [
      textAt(given, 'type'),
      textAt(given, 'id'),
      textAt(given, 'call_id'),
    ];
    const alike = known.filter((item) => item.type === type && isSameCall(item, callId));
    return (
      alike.find(({ fields }) => callId !== '' && fields['call_id'] === callId) ??
      alike.find(({ fields }) => id !== '' && fields['id'] === id) ??
      alike.find((item) => item.index === index) ??
      alike[0]
    );
  }
}

const identityOf = (item: OutputItem, kind: Unit['kind'], start: Chunks): string =>
  kind === 'call' ? callIdentity(item) : kind === 'text' ? JSON.stringify(start) : '';

/** The first index of tool calls whose own index is missing or taken. */
const firstFree = 1_000_000;

const placeOf = (type: string, index: number): string => `${index}/${type}`;

const isSameCall = ({ fields }: OutputItem, callId: string): boolean =>
  callId === '' || fields['call_id'] === undefined || fields['call_id'] === callId;

/** Whether the output lists an item again: a call must not run twice. */
const isRepeated = ({ type, fields }: OutputItem, given: unknown): boolean => {
  const [id, callId] = [textAt(given, 'id'), textAt(given, 'call_id')];
  if (type !== textAt(given, 'type') || callId !== textIn(fields['call_id'])) return false;
  if (callId === '') return id !== '' && id === fields['id'];
  return fieldsKey(fields) === fieldsKey(fieldsOf(given));
};

const fieldsKey = ({ name, arguments: written, input }: JsonRecord): string =>
  JSON.stringify([name, written, input]);

const isSettled = (item: OutputItem): boolean =>
  item.rank >= rank.item || [...item.parts.values()].some((part) => part.rank > rank.streamed);

const byIndex = (one: OutputItem, other: OutputItem): number =>
  typeof one.index === 'number' && typeof other.index === 'number' ? one.index - other.index : 0;

const finalUnits = (items: readonly OutputItem[], source: ReaderSource) => {
  let followsText = false;
  const ran = new Set(
    items.filter(({ type }) => type.endsWith('_output')).map(({ fields }) => fields['call_id']),
  );
  return items.flatMap((item) => {
    const place: Place = {
      followsText,
      isRun: ran.has(item.fields['call_id'] ?? ''),
      isFinal: true,
    };
    const units = unitsOf(item, source, place);
    followsText ||= units.some(({ kind }) => kind === 'text');
    return units.filter(isShown).map((unit) => ({ item, unit }));
  });
};

const isShown = ({ kind, text, start, ends }: Unit): boolean => {
  switch (kind) {
    case 'call':
      return start.length > 0;
    case 'block':
      return true;
    default:
      return text !== '' || ends.length > 0;
  }
};

const textOf = ({ callIndex }: OutputItem, kind: Unit['kind'], text: string): Chunks => {
  if (text === '') return [];
  switch (kind) {
    case 'text':
    case 'thinking':
      return [{ type: kind, text }];
    case 'call':
      return [{ type: 'toolCall', index: callIndex, json: text }];
    case 'block':
      return [];
  }
};

/** The chunks of a block that begins. A call with its arguments is one chunk. */
const opened = (item: OutputItem, { kind, start, text, ends }: Unit): Chunks => {
  const [first] = start;
  return first?.type === 'toolCall' && text !== ''
    ? [{ ...first, json: text }, ...ends]
    : [...start, ...textOf(item, kind, text), ...ends];
};

const joined = (texts: string[]): string => {
  if (texts.length > 1) texts.splice(0, texts.length, texts.join(''));
  return texts[0] ?? '';
};
