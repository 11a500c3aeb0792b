import { expressionsIn } from './arithmetic.js';
import { formOf, forms, longestMatched, type Parameter, type Scalar } from './parameter.js';
import { overlaps, type Phrase, type Span, stemsIn } from './phrase.js';

/** A value for a parameter, and the words of the text that it comes from. */
export interface Value extends Span {
  readonly value: Scalar;
  /** Its form can hardly mean anything else: an address, a code, an expression. */
  readonly isTelling?: boolean;
  /** It is, or contains, an earlier result. */
  readonly refers?: boolean;
}

/** Where values are looked for. */
export interface Source {
  readonly phrase: Phrase;
  /** Words that other parameters have taken. */
  readonly taken: readonly Span[];
  /** Stems of the words that call for the tool, and so are no argument. */
  readonly ownStems: ReadonlySet<string>;
  /** Stems of the words that describe the tool. */
  readonly topicStems: ReadonlySet<string>;
  /** The referent of `it` and `the result`; empty if it is not known yet. */
  readonly reference: string;
}

/** Finds values that the schema of a parameter allows. Those that the text names, as in `limit 5` or `to EUR`, come first. */
export const valuesFor = (parameter: Parameter, source: Source): readonly Value[] => {
  const { kind, name, required, accepts } = parameter;
  const { words } = source.phrase;
  const own = new Set([name.toLowerCase(), ...stemsIn(name)]);
  const isNamed = ({ start, end }: Value): boolean => {
    const before = words.findLast((word) => word.end <= start);
    const after = kind === 'number' ? words.find((word) => word.start >= end) : undefined;
    const isOwn = (text = ''): boolean => own.has(text.toLowerCase());
    return [before, after].some((word) => isOwn(word?.text) || isOwn(word?.stem));
  };
  const found = candidates(parameter, source)
    .slice(0, 32)
    .filter((it) => !source.taken.some((span) => overlaps(span, it)))
    .filter((it) => (it.refers === true && source.reference === '') || accepts(it.value));
  const named = found.filter(isNamed);
  // An optional parameter that any text could fill is filled only by what the text names.
  const isAmbiguous = !required && ['number', 'prose', 'query'].includes(kind);
  return isAmbiguous ? named : [...named, ...found.filter((it) => !named.includes(it))];
};

const candidates = (parameter: Parameter, source: Source): readonly Value[] => {
  const form = forms.get(parameter.kind);
  if (form !== undefined) return formed(source.phrase, (text) => form.test(text));
  return finders[parameter.kind]?.(parameter, source) ?? [];
};

/** Values that a regular expression finds; of its groups, if it has any, the one that matched. */
const matchesOf = ({ text }: Phrase, pattern: RegExp): readonly Value[] =>
  Array.from(text.matchAll(pattern), ({ 0: all, index, ...groups }) => ({
    value: [groups[1], groups[2], groups[3]].find((it) => it !== undefined) ?? all,
    start: index,
    end: index + all.length,
  }));

const formed = ({ words }: Phrase, test: (text: string) => boolean): readonly Value[] =>
  words
    .filter(({ text }) => text !== '' && text.length <= 400 && test(text))
    .map(({ text, start, end }) => ({ value: text, start, end, isTelling: true }));

type Finder = (parameter: Parameter, source: Source) => readonly Value[];

const code: Finder = ({ examples, accepts }, { phrase }) => {
  const exampleForms = new Set(examples.map(formOf));
  const isFormed = (text: string): boolean =>
    exampleForms.size === 0 || exampleForms.has(formOf(text));
  return formed(phrase, (text) => text.length <= longestMatched && isFormed(text) && accepts(text));
};

const arithmetic: Finder = ({ examples }, { phrase, reference }) => {
  const quoted = matchesOf(phrase, /`([^`]{0,300}\d[^`]{0,300})`/gu);
  const found = expressionsIn(phrase.text, examples).map(({ start, end, references }) => ({
    value: replaced(phrase.text, { start, end }, references, reference),
    start,
    end,
    refers: references.length > 0,
  }));
  return [...quoted, ...found].map((it) => ({ ...it, isTelling: true }));
};

/** A stretch of the text, with a value in the places of what refers to it. */
const replaced = (text: string, whole: Span, places: readonly Span[], value: string): string => {
  const starts = [whole.start, ...places.map(({ end }) => end)];
  const ends = [...places.map(({ start }) => start), whole.end];
  return starts.map((start, at) => text.slice(start, ends[at])).join(value);
};

const choice: Finder = (parameter, { phrase: { words } }) => {
  const stems = words.map(({ stem }) => stem);
  const known = new Set(stems);
  const found = parameter.choices.flatMap((value): readonly Value[] => {
    const wanted = stemsIn(String(value));
    if (wanted.length === 0 || !wanted.every((stem) => known.has(stem))) return [];
    const at = stems.findIndex((_, index) =>
      wanted.every((it, next) => stems[index + next] === it),
    );
    const [first, last] = [words[at], words[at + wanted.length - 1]];
    return first && last ? [{ value, start: first.start, end: last.end }] : [];
  });
  return found.toSorted((a, b) => a.start - b.start);
};

const digits = /^\p{Sc}?(-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?)(?:%|\p{Sc}|\p{L}{0,10})$/u;

const number: Finder = (_parameter, { phrase }) =>
  phrase.words.flatMap(({ text, start, end }): readonly Value[] => {
    const value = digits.exec(text)?.[1]?.replaceAll(',', '');
    return value === undefined ? [] : [{ value: Number(value), start, end }];
  });

const flag: Finder = ({ name }, { phrase: { words } }) => {
  const own = new Set(stemsIn(name));
  const at = words.findIndex(({ stem }) => own.has(stem));
  const isDenied = /^(?:no|not|without|never)$/iu.test(words[at - 1]?.text ?? '');
  return words.slice(at, at + 1).map(({ start, end }) => ({ value: !isDenied, start, end }));
};

/** The place of a value that explains no word of the text, because every text has one. */
const nowhere: Span = { start: 0, end: 0 };

/** The words that say something, without those that name the tool if the text begins with one. */
const query: Finder = (_parameter, { phrase: { content }, ownStems }) => {
  const subject = content.filter(({ stem }) => !ownStems.has(stem));
  const isCommand = ownStems.has(content[0]?.stem ?? '') && subject.length > 0;
  const words = (isCommand ? subject : content).map(({ text }) => text);
  return words.length === 0 ? [] : [{ ...nowhere, value: words.join(' ').slice(0, 300) }];
};

/** Text in quotation marks, or after a colon. */
const setApart = (phrase: Phrase): readonly Value[] => {
  const quoted = matchesOf(
    phrase,
    /"([^"\n]{1,2000})"|“([^”\n]{1,2000})”|(?<=^|\s)'([^'\n]{1,2000})'(?!\p{L})/gu,
  );
  return quoted.length > 0 ? quoted : matchesOf(phrase, /(?<=^[^:]{0,2000}: )\S[^]*$/gu);
};

/** Names: words with a capital letter, other than the first of a sentence. */
const capitalised = (phrase: Phrase): readonly Value[] =>
  matchesOf(
    phrase,
    /(?<=[^.!?\s]\s)(\p{Lu}[\p{L}\p{N}+/-]{0,60}(?: \p{Lu}[\p{L}\p{N}-]{0,60}){0,3})(?:['’]s)?/gu,
  ).filter(({ value }) => value !== 'I');

/** The text from the first to the last word that is left. */
const remainder = ({ phrase, taken }: Source, without: ReadonlySet<string>): readonly Value[] => {
  const left = phrase.content.filter(
    (word) => !without.has(word.stem) && !taken.some((span) => overlaps(span, word)),
  );
  const [first, last] = [left[0], left.at(-1)];
  if (first === undefined || last === undefined) return [];
  const next = taken.map(({ start }) => start).filter((start) => start > first.start);
  const value = phrase.text
    .slice(first.start, Math.min(last.end, ...next))
    .trim()
    .replace(/\s(?:and|as|at|for|from|in|into|of|to|with)$/iu, '');
  return [{ ...nowhere, value: value.slice(0, 2_000) }];
};

const firstFound = (...found: readonly (readonly Value[])[]): readonly Value[] =>
  found.find(({ length }) => length > 0) ?? [];

const finders: Readonly<Partial<Record<Parameter['kind'], Finder>>> = {
  ...{ arithmetic, code, choice, number, flag, query },
  name: (_, it) =>
    firstFound(setApart(it.phrase), capitalised(it.phrase), remainder(it, it.topicStems)),
  prose: (_, it) => firstFound(setApart(it.phrase), remainder(it, it.ownStems)),
};
