import { kinds, type Parameter } from './parameter.js';
import type { Phrase, Span } from './phrase.js';
import { type Source, type Value, valuesFor } from './values.js';

/** The arguments of one tool call. */
export type Input = Readonly<Record<string, unknown>>;

/** The arguments that the text provides for the parameters of a tool. */
export interface Filling {
  /** One for each call: `in Tokyo and London` makes two, unless the parameter takes a list. */
  readonly inputs: readonly Input[];
  /** Required parameters without a value. */
  readonly missing: readonly Parameter[];
  /** The words that became arguments. */
  readonly spans: readonly Span[];
  /** An argument has a form that can hardly mean anything else. */
  readonly isTelling: boolean;
  /** An argument is, or contains, an earlier result. */
  readonly refers: boolean;
}

/** Values from outside the text. */
export interface FillingContext extends Pick<Source, 'ownStems' | 'topicStems'> {
  readonly reference?: string;
  /** A call is forced: what the text does not say is taken from the declaration (`enum`, `examples`). */
  readonly isForced?: boolean;
}

/** Fills the parameters of a tool from text: the most particular ones first, so that a general one gets what is left. */
export const fillArguments = (
  parameters: readonly Parameter[],
  phrase: Phrase,
  { ownStems, topicStems, reference = '', isForced = false }: FillingContext,
): Filling => {
  const order = parameters.toSorted(
    (a, b) =>
      Number(b.required) - Number(a.required) || kinds.indexOf(a.kind) - kinds.indexOf(b.kind),
  );
  const filled = new Map<Parameter, readonly Value[]>();
  for (const parameter of order) {
    const taken = [...filled.values()].flat();
    const source = { phrase, taken, ownStems, topicStems, reference };
    const values = chosenValues(parameter, parameters, source);
    const isOpen = isForced && parameter.required && values.length === 0;
    filled.set(parameter, isOpen ? declaredValue(parameter, phrase) : values);
  }
  const used = [...filled.values()].flat();
  return {
    inputs: inputsOf(parameters, filled),
    missing: order.filter(
      (it) => it.required && it.fallback === undefined && filled.get(it)?.length === 0,
    ),
    spans: used.filter(({ start, end }) => end > start),
    isTelling: used.some(({ isTelling = false }) => isTelling),
    refers: used.some(({ refers = false }) => refers),
  };
};

const chosenValues = (
  parameter: Parameter,
  parameters: readonly Parameter[],
  source: Source,
): readonly Value[] => {
  const { kind, required, list } = parameter;
  if (!required && kind === 'name' && parameters[0] !== parameter) return [];
  const found = valuesFor(parameter, source);
  if (found.length === 0) return required ? referredValue(parameter, source) : [];
  const distinct = [...new Map(found.map((it) => [it.value, it])).values()];
  if (list !== undefined) return distinct.length < list[0] ? [] : distinct.slice(0, list[1]);
  const isShared = parameters.some((it) => it !== parameter && it.kind === kind);
  return isShared ? found.slice(0, 1) : joined(found, source.phrase.text);
};

/** `it` and `the result` stand for an earlier result. */
const referredValue = (
  { kind, accepts }: Parameter,
  { phrase, reference }: Source,
): readonly Value[] => {
  const word = phrase.words.find(({ text }) => /^(?:it|that|this|them|result)$/iu.test(text));
  const isIdiom = /\b(?:is it|it is)\b/iu.test(phrase.text);
  if (word === undefined || isIdiom || !(isGeneral(kind) || kind === 'number')) return [];
  const value = kind === 'number' ? Number(numberIn(reference)) : reference;
  const { start, end } = word;
  return reference === '' || accepts(value) ? [{ value, start, end, refers: true }] : [];
};

/** Whether any text could fill a parameter. */
const isGeneral = (kind: Parameter['kind']): boolean => ['name', 'prose', 'query'].includes(kind);

/** A value that the declaration has, or the whole text. It is never invented. */
const declaredValue = ({ kind, list, choices, examples, accepts }: Parameter, { text }: Phrase) => {
  const known = kind === 'number' ? examples.map(Number) : examples;
  const value = [...(isGeneral(kind) ? [text.slice(0, 2_000)] : []), ...choices, ...known]
    .filter(() => kind !== 'opaque' && kind !== 'flag' && (list?.[0] ?? 1) <= 1)
    .find(accepts);
  return value === undefined ? [] : [{ value, start: 0, end: 0 }];
};

/** The one number of the text, without separators of thousands. */
const numberIn = (text: string): string | undefined => {
  const numbers = text.match(/(?<![\w.])-?\d[\d,]*(?:\.\d+)?/gu) ?? [];
  return numbers.length === 1 ? numbers.join().replaceAll(',', '') : undefined;
};

const mostCalls = 8;

/** The first value and those that a comma or `and` joins to it; of codes, addresses and the like, all. */
const joined = (values: readonly Value[], text: string): readonly Value[] => {
  const end = values.findIndex((value, at) => {
    const before = values[at - 1];
    if (before === undefined || (value.isTelling === true && before.isTelling === true))
      return false;
    const between = text.slice(before.end, value.start);
    return (
      value.start < before.end ||
      between.length > 30 ||
      !/^[\s,?]*(?:and|or|&)?[\s,]*(?:(?:in|for|at|of|the) )*$/iu.test(between)
    );
  });
  return values.slice(0, end < 0 ? mostCalls : Math.min(end, mostCalls));
};

/** The arguments of each call, in the order of the schema. */
const inputsOf = (
  parameters: readonly Parameter[],
  filled: ReadonlyMap<Parameter, readonly Value[]>,
): readonly Input[] => {
  const valuesOf = (it: Parameter): readonly Value[] => filled.get(it) ?? [];
  const several = parameters.find((it) => it.list === undefined && valuesOf(it).length > 1);
  const chosen = several === undefined ? [undefined] : valuesOf(several);
  return chosen.map((one) =>
    Object.fromEntries(
      parameters.flatMap((it): readonly (readonly [string, unknown])[] => {
        const values = valuesOf(it).map(({ value }) => value);
        const value = it === several ? one?.value : it.list === undefined ? values[0] : values;
        const isFilled = values.length > 0 || (it.required && it.fallback !== undefined);
        return isFilled ? [[it.name, values.length > 0 ? value : it.fallback]] : [];
      }),
    ),
  );
};
