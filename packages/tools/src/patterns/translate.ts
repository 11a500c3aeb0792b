import { characterClass } from './character-class.js';
import { anEscape, readCharacter, type Refuse, textOf } from './character.js';

/** What it takes to run a part of a pattern. */
interface Cost {
  /** Its characters and sets, each as often as it is repeated. */
  readonly parts: number;
  /** About how many instructions a program for it has. */
  readonly steps: number;
}

/** A pattern of ECMAScript in the syntax of RE2. */
export interface Translation extends Cost {
  readonly source: string;
}

/**
 * Writes a pattern so that RE2 finds it in the same texts, or throws what `refuse` makes of the reason. Groups do not capture:
 * that does not change whether a text matches.
 */
export const translate = (pattern: string, refuse: Refuse): Translation => {
  if ((pattern.match(anyProperty)?.length ?? 0) > mostProperties) {
    throw refuse(`it names more than ${mostProperties} properties of characters`);
  }
  const isUnicode = isPattern(pattern, 'u');
  if (!isUnicode && !isPattern(pattern, '')) throw refuse('it is no regular expression');
  const { source, groups } = (pattern.match(anyToken) ?? []).reduce(
    (done, token) => withToken(done, token, isUnicode, refuse),
    beginning,
  );
  return { source, ...costOf(groups[0] ?? empty) };
};

/** Each is a list of some hundred ranges, which takes the platform a while to make. */
const mostProperties = 40;
const anyProperty = /\\p\{/giu;

const isPattern = (pattern: string, flags: string): boolean => {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
};

const aClass = String.raw`\[(?:\\.|[^\]\\])*\]`;
const aQuantifier = String.raw`(?:[*+?]|\{\d+(?:,\d*)?\})\??`;
const anOpening = String.raw`\((?:\?(?:<(?![=!])[^>]*>|<?.))?`;

/** Of a pattern that is known to be one. */
const anyToken = new RegExp(`${anEscape}|${aClass}|${aQuantifier}|${anOpening}|.`, 'gisu');

/** What a group holds: the part that a quantifier would repeat, and all before it. */
interface Group {
  readonly before: Cost;
  readonly last: Cost;
}

interface Progress {
  readonly source: string;
  /** Those that are open, from the innermost to the whole pattern. */
  readonly groups: readonly Group[];
}

const nothing: Cost = { parts: 0, steps: 0 };
const empty: Group = { before: nothing, last: nothing };
const beginning: Progress = { source: '', groups: [empty] };

const withToken = (
  { source, groups }: Progress,
  token: string,
  isUnicode: boolean,
  refuse: Refuse,
): Progress => {
  const [group = empty, ...outer] = groups;
  const [parent = empty, ...rest] = outer;
  if (token === ')') {
    return {
      source: `${source})`,
      groups: [{ before: costOf(parent), last: costOf(group) }, ...rest],
    };
  }
  if (token.startsWith('(')) {
    if (groups.length > mostNested) throw refuse('its groups are nested too deep');
    return { source: source + openingOf(token, refuse), groups: [empty, ...groups] };
  }
  if (isQuantifier.test(token)) {
    const last = repeated(group.last, token);
    return { source: source + token, groups: [{ ...group, last }, ...outer] };
  }
  const mark = marks.get(token);
  const last = mark === undefined ? costOfPart(token) : { parts: 0, steps: 1 };
  return {
    source: source + (mark ?? partOf(token, isUnicode, refuse)),
    groups: [{ before: costOf(group), last }, ...outer],
  };
};

const mostNested = 100;

const isQuantifier = /^(?:[*+?]|\{\d)/u;

const marks: ReadonlyMap<string, string> = new Map([
  ['^', String.raw`\A`],
  ['$', String.raw`\z`],
  [String.raw`\b`, String.raw`\b`],
  [String.raw`\B`, String.raw`\B`],
  ['|', '|'],
]);

const openingOf = (token: string, refuse: Refuse): string => {
  if (/^\((?:$|\?:|\?<[^=!])/u.test(token)) return '(?:';
  throw refuse(/[=!]$/u.test(token) ? 'it looks ahead or behind' : 'it sets flags within');
};

const partOf = (token: string, isUnicode: boolean, refuse: Refuse): string => {
  if (token === '.') return String.raw`[^\x{a}\x{d}\x{2028}\x{2029}]`;
  if (token.startsWith('[')) return characterClass(token, isUnicode, refuse);
  return `[${textOf(readCharacter(token, isUnicode, refuse), refuse)}]`;
};

const costOfPart = (token: string): Cost => ({
  parts: 1,
  steps: 1 + stepsOfProperty * (token.match(anyProperty) ?? []).length,
});

const stepsOfProperty = 8;

const repeated = ({ parts, steps }: Cost, quantifier: string): Cost => {
  const [least = 0, most = least] = (quantifier.match(/\d+/gu) ?? []).map(Number);
  const times = Math.max(1, most);
  return { parts: parts * times, steps: steps * times + Math.max(1, times - least) };
};

const costOf = ({ before, last }: Group): Cost => ({
  parts: before.parts + last.parts,
  steps: before.steps + last.steps,
});
