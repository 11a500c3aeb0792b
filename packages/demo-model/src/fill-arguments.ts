import { findValues, isAllowed } from './find-values.js';
import { withRange } from './line-range.js';
import type { Source } from './free-text.js';
import type { Slot } from './read-slots.js';
import type { SlotKind } from './slot-kind.js';
import type { Value } from './value.js';
import { type Span, tokensOf } from './words.js';

/** The arguments of one call. */
export type Input = Readonly<Record<string, unknown>>;

/** What a text gives for the parameters of a tool. */
export interface Filling {
  /** A call for each, and for each call its readings: the likeliest first, another where there is one. */
  readonly calls: readonly (readonly Input[])[];
  /** Required parameters that the text does not give. */
  readonly missing: readonly Slot[];
  /** The words that became arguments. */
  readonly spans: readonly Span[];
  /** The words can hardly have meant anything else. */
  readonly telling: boolean;
  /** It needs a result that is not there yet. */
  readonly waits: boolean;
}

/** What is known beside the text. */
export type FillingContext = Partial<Pick<Source, 'reference' | 'ownStems' | 'wholeText'>>;

/**
 * Fills the parameters of a tool from a text: the most particular ones first, so that a general one gets what
 * is left. Names that are joined (`in Tokyo and London`) make a call each, unless the parameter takes a list.
 */
export const fillArguments = (
  slots: readonly Slot[],
  text: string,
  { reference, ownStems = new Set(), wholeText = false }: FillingContext = {},
): Filling => {
  let filled: readonly Filled[] = [];
  for (const slot of inOrder(slots)) {
    const taken = filled.flatMap(({ values }) => values);
    const source = { text, reference, ownStems, wholeText, taken };
    filled = [...filled, { slot, values: valuesFor(slot, slots, source) }];
  }
  filled = withRange(filled, text);
  const values = filled.flatMap((it) => it.values);
  return {
    calls: callsOf(slots.flatMap((slot) => filled.find((it) => it.slot === slot) ?? [])),
    missing: filled.filter(isMissing).map(({ slot }) => slot),
    spans: values.filter(({ start, end }) => end > start),
    telling: values.some(({ telling }) => telling),
    waits: values.some(({ waits }) => waits === true),
  };
};

interface Filled {
  readonly slot: Slot;
  readonly values: readonly Value[];
}

const particularity: readonly SlotKind[] = [
  'expression',
  'url',
  'email',
  'shaped',
  'path',
  'date',
  'choice',
  'place',
  'number',
  'flag',
  'name',
  'prose',
  'query',
];

const inOrder = (slots: readonly Slot[]): readonly Slot[] =>
  slots.toSorted(
    (a, b) =>
      Number(b.required) - Number(a.required) ||
      particularity.indexOf(a.kind) - particularity.indexOf(b.kind),
  );

/** Parameters that any text could fill: they are left alone where they may be. */
const general: ReadonlySet<SlotKind> = new Set(['name', 'prose', 'query']);

/** The values that are used: all for a list; else one, and those that are joined to it for calls of their own. */
const valuesFor = (slot: Slot, slots: readonly Slot[], source: Source): readonly Value[] => {
  if (!slot.required && general.has(slot.kind) && slots[0] !== slot) return [];
  const found = byPreposition(slot, findValues(slot, source), source.text);
  if (found.length === 0) return slot.required ? referred(slot, source) : [];
  if (slot.many) return found;
  const isShared = slots.some((other) => other !== slot && other.kind === slot.kind);
  return isShared ? found.slice(0, 1) : joined(found, source.text);
};

const prepositions: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:to|target|destination|dest|into|until|end)/iu, /\b(?:to|into|in|until)\s*$/iu],
  [/^(?:from|source|origin|since|start)/iu, /\b(?:from|since)\s*$/iu],
];

/** A parameter called `to` prefers what follows `to`. */
const byPreposition = (slot: Slot, values: readonly Value[], text: string): readonly Value[] => {
  const behind = prepositions.find(([name]) => name.test(slot.name))?.[1];
  if (behind === undefined) return values;
  const isBehind = ({ start }: Value): boolean =>
    behind.test(text.slice(Math.max(0, start - 12), start));
  return values.toSorted((a, b) => Number(isBehind(b)) - Number(isBehind(a)));
};

/** `it` and `the result` stand for an earlier result. */
const referred = (slot: Slot, { text, reference }: Source): readonly Value[] => {
  if (!general.has(slot.kind) && slot.kind !== 'number') return [];
  const token = tokensOf(text).find((it) => /^(?:it|that|this|result|there|them)$/iu.test(it.text));
  if (token === undefined) return [];
  const { start, end } = token;
  if (reference === undefined) return [{ value: '', start, end, telling: false, waits: true }];
  const value = slot.kind === 'number' ? Number(reference) : reference;
  return isAllowed(slot, value) ? [{ value, start, end, telling: false }] : [];
};

const isMissing = ({ slot, values }: Filled): boolean =>
  slot.required && values.length === 0 && slot.fallback === undefined;

const callsOf = (filled: readonly Filled[]): readonly (readonly Input[])[] => {
  const several = filled.find(({ slot, values }) => !slot.many && values.length > 1);
  const heads = several === undefined ? [undefined] : several.values;
  return heads.slice(0, mostCalls).map((head) => {
    const chosen = filled.map((it) =>
      it === several && head !== undefined ? { ...it, values: [head] } : it,
    );
    const input = inputOf(chosen);
    return [input, ...otherInputs(chosen, input)];
  });
};

const mostCalls = 8;

const joint =
  /^[\s,]*(?:and|or|&|with|vs\.?|versus|as well as)?[\s,]*(?:also |then )?(?:in |for |at |of |the )*$/iu;

/** The first value and those that a comma or `and` joins to it; of arithmetic, paths and the like, all. */
const joined = (values: readonly Value[], text: string): readonly Value[] => {
  const end = values.findIndex((value, index) => {
    const before = values[index - 1];
    if (before === undefined || (value.telling && before.telling)) return false;
    return value.start < before.end || !joint.test(text.slice(before.end, value.start));
  });
  return values.slice(0, end < 0 ? values.length : end);
};

const inputOf = (filled: readonly Filled[]): Input =>
  Object.fromEntries(
    filled.flatMap(({ slot, values }): readonly (readonly [string, unknown])[] => {
      const [first] = values;
      if (first === undefined)
        return slot.required && slot.fallback !== undefined ? [[slot.name, slot.fallback]] : [];
      return [[slot.name, slot.many ? values.map(({ value }) => value) : first.value]];
    }),
  );

/** The same call with one argument read otherwise. */
const otherInputs = (filled: readonly Filled[], input: Input): readonly Input[] => {
  const other = filled.find(
    ({ slot, values }) => !slot.many && (values[0]?.others?.length ?? 0) > 0,
  );
  const [value] = other?.values[0]?.others ?? [];
  return other === undefined || value === undefined ? [] : [{ ...input, [other.slot.name]: value }];
};

/**
 * Fills what is missing as far as the declaration itself gives a value, or the whole text may be one: for a
 * caller who insists on a call. Values are never invented.
 */
export const insist = ({ calls, missing, ...filling }: Filling, text: string): Filling => {
  const additions = missing.map((slot) => ({ slot, value: insisted(slot, text) }));
  const added = Object.fromEntries(
    additions.flatMap(({ slot, value }) =>
      value === undefined ? [] : [[slot.name, slot.many ? [value] : value]],
    ),
  );
  return {
    ...filling,
    calls: calls.map((readings) => readings.map((input) => ({ ...input, ...added }))),
    missing: additions.filter(({ value }) => value === undefined).map(({ slot }) => slot),
  };
};

const insisted = (slot: Slot, text: string): unknown => {
  const { kind, choices, examples } = slot;
  if (kind === 'choice') return choices[0];
  if (kind === 'opaque' || kind === 'flag') return undefined;
  if (kind === 'number') return examples.map(Number).find((it) => isAllowed(slot, it));
  return [general.has(kind) ? text.trim().slice(0, 2_000) : '', ...examples].find((it) =>
    isAllowed(slot, it),
  );
};
