import { escapeSource, readCharacter, type Refuse, textOf } from './character.js';
import { characterClass } from './character-class.js';

/** The cost of running a part of a pattern. */
interface Cost {
  /** The number of its characters and sets, multiplied by their repetitions. */
  readonly parts: number;
  /** The approximate number of its instructions. */
  readonly steps: number;
}

/** A pattern in the syntax of RE2. */
export interface Translation extends Cost {
  readonly source: string;
}

/** Translates a pattern to RE2, or throws `refuse(reason)`. Groups do not capture, which does not affect matching. */
export const translate = (pattern: string, refuse: Refuse): Translation => {
  if ((pattern.match(anyProperty)?.length ?? 0) > maxProperties) {
    throw refuse(`it contains more than ${maxProperties} character properties`);
  }
  const isUnicode = isPattern(pattern, 'u');
  if (!isUnicode && !isPattern(pattern, '')) throw refuse('it is not a regular expression');
  const { source, groups } = (pattern.match(anyToken) ?? []).reduce(
    (done, token) => withToken(done, token, isUnicode, refuse),
    initial,
  );
  return { source, ...costOf(groups[0] ?? empty) };
};

/** Each property is a list of some hundred ranges, which takes a while to create. */
const maxProperties = 40;
const anyProperty = /\\p\{/giu;

const isPattern = (pattern: string, flags: string): boolean => {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
};

const classSource = String.raw`\[(?:\\.|[^\]\\])*\]`;
const quantifierSource = String.raw`(?:[*+?]|\{\d+(?:,\d*)?\})\??`;
const openingSource = String.raw`\((?:\?(?:<(?![=!])[^>]*>|<?.))?`;

/** Splits a valid pattern into tokens. */
const anyToken = new RegExp(
  `${escapeSource}|${classSource}|${quantifierSource}|${openingSource}|.`,
  'gisu',
);

/** The cost of a group: the part that a quantifier would repeat, and everything before it. */
interface Group {
  readonly before: Cost;
  readonly last: Cost;
}

interface Progress {
  readonly source: string;
  /** The open groups, from the innermost to the whole pattern. */
  readonly groups: readonly Group[];
}

const nothing: Cost = { parts: 0, steps: 0 };
const empty: Group = { before: nothing, last: nothing };
const initial: Progress = { source: '', groups: [empty] };

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
    if (groups.length > maxNesting) throw refuse('its groups are nested too deeply');
    return { source: source + openingOf(token, refuse), groups: [empty, ...groups] };
  }
  if (isQuantifier.test(token)) {
    const last = repeat(group.last, token);
    return { source: source + token, groups: [{ ...group, last }, ...outer] };
  }
  const mark = marks.get(token);
  const last = mark === undefined ? costOfPart(token) : { parts: 0, steps: 1 };
  return {
    source: source + (mark ?? partOf(token, isUnicode, refuse)),
    groups: [{ before: costOf(group), last }, ...outer],
  };
};

const maxNesting = 100;

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
  throw refuse(/[=!]$/u.test(token) ? 'it uses look-around' : 'it uses inline flags');
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

const repeat = ({ parts, steps }: Cost, quantifier: string): Cost => {
  const [least = 0, most = least] = (quantifier.match(/\d+/gu) ?? []).map(Number);
  const times = Math.max(1, most);
  return { parts: parts * times, steps: steps * times + Math.max(1, times - least) };
};

const costOf = ({ before, last }: Group): Cost => ({
  parts: before.parts + last.parts,
  steps: before.steps + last.steps,
});
