import { normalized } from '../in-process-long-term-memory.js';
import type { Fact, FormerFact } from './facts.js';

/** A fact that a model extracted, before it has an id and a chain. */
export interface Draft {
  readonly text: string;
  readonly subject: string;
  readonly attribute?: string;
  readonly validFrom: number;
  readonly expiresAt?: number;
  readonly sources: readonly string[];
  readonly quote: string;
  readonly reason: string;
}

/** A change that a model asks for, with known facts in place of its ids. */
export type Operation =
  | { readonly op: 'add'; readonly draft: Draft }
  | { readonly op: 'update'; readonly target: Fact; readonly draft: Draft }
  | { readonly op: 'forget'; readonly target: Fact };

/** The changes to write, from operations on the current facts of a scope. */
export interface Changes {
  /** The facts that hold after the changes. */
  readonly current: readonly Fact[];
  readonly added: readonly Fact[];
  /** Facts that replace others. */
  readonly updated: readonly Fact[];
  readonly forgotten: readonly Fact[];
  /** Facts that moved to the history. */
  readonly former: readonly FormerFact[];
}

export interface Limits {
  readonly now: number;
  readonly maxFacts: number;
}

interface State extends Omit<Changes, 'added' | 'updated'> {
  /** Which new fact took the place of another one. */
  readonly successors: ReadonlyMap<string, string>;
}

/**
 * Applies operations in order, then merges duplicates, drops expired facts and evicts the oldest ones. Each chain has
 * one fact afterwards, for any operations. Applying the same ones again changes nothing.
 */
export const changesBy = (
  facts: readonly Fact[],
  operations: readonly Operation[],
  limits: Limits,
): Changes => {
  const start: State = { current: facts, forgotten: [], former: [], successors: new Map() };
  const changed = operations.reduce(
    (state, operation) => applied(state, operation, limits.now),
    start,
  );
  const { current, forgotten, former } = consolidated(changed, limits);
  const known = new Set(facts.map(({ id }) => id));
  const recorded = current.filter(({ id }) => !known.has(id));
  const replacing = new Set(former.map(({ supersededBy }) => supersededBy));
  return {
    current,
    added: recorded.filter(({ id }) => !replacing.has(id)),
    updated: recorded.filter(({ id }) => replacing.has(id)),
    forgotten,
    former,
  };
};

const applied = (state: State, operation: Operation, now: number): State => {
  switch (operation.op) {
    case 'add':
      return withFact(state, factFrom(operation.draft), undefined, now);
    case 'update': {
      const target = latestOf(state, operation.target);
      return withFact(state, factFrom(operation.draft, target), target, now);
    }
    case 'forget':
      return forgotten(state, operation.target);
  }
};

/** The fact in its place now: an earlier operation may have replaced it. `undefined` if it is gone. */
const latestOf = ({ current, successors }: State, { id }: Fact): Fact | undefined => {
  const successor = successors.get(id);
  const found = current.find((fact) => fact.id === id);
  if (found !== undefined || successor === undefined) return found;
  return current.find((fact) => fact.id === successor);
};

/** Makes the same fact of the same statement each time, so that recording it again changes nothing. */
const factFrom = (draft: Draft, target?: Fact): Fact => {
  const { text, sources, attribute } = draft;
  const id = `fact/${hashOf(JSON.stringify([normalized(text), sources]))}`;
  const named = attribute === undefined ? id : chainOf(draft.subject, attribute);
  if (target === undefined) return { ...draft, id, chain: named };
  // A fact without an attribute gets a chain of its own, which its replacement continues.
  const isNamed = target.attribute !== undefined;
  const { attribute: kept = attribute } = target;
  return {
    ...draft,
    id,
    subject: isNamed ? target.subject : draft.subject,
    ...(kept === undefined ? {} : { attribute: kept }),
    chain: isNamed || attribute === undefined ? target.chain : named,
  };
};

const chainOf = (subject: string, attribute: string): string =>
  JSON.stringify([normalized(subject), normalized(attribute)]);

/** Adds a fact in place of its target and of the current fact of its chain. A known fact stays as it is. */
const withFact = (state: State, fact: Fact, target: Fact | undefined, now: number): State => {
  const same = state.current.find(({ text }) => wordsOf(text) === wordsOf(fact.text));
  const replaced = [
    ...new Set([target, state.current.find(({ chain }) => chain === fact.chain)]),
  ].flatMap((it) => (it === undefined || it === same ? [] : [it]));
  const isTarget = same !== undefined && same === target;
  if (isTarget) return state;
  const kept = same ?? fact;
  const moved = replaced.filter(({ id }) => id !== kept.id);
  const without = moved.reduce((left, it) => retired(left, it, 'updated', now, kept.id), state);
  // A fact that was there before stands for itself: operations on the replaced one do not change it.
  if (same !== undefined) return without;
  const successors = succeeded(state.successors, moved, fact);
  return { ...without, current: [...without.current, fact], successors };
};

const succeeded = (
  successors: State['successors'],
  replaced: readonly Fact[],
  { id }: Fact,
): State['successors'] => {
  const gone = new Set(replaced.map((fact) => fact.id));
  const later = [...successors].map(([from, to]) => [from, gone.has(to) ? id : to] as const);
  return new Map([...later, ...[...gone].map((from) => [from, id] as const)]);
};

const retired = (
  state: State,
  fact: Fact,
  why: FormerFact['why'],
  now: number,
  supersededBy?: string,
): State => ({
  ...state,
  current: state.current.filter(({ id }) => id !== fact.id),
  former: [
    ...state.former.filter(({ id }) => id !== fact.id),
    { ...fact, validUntil: now, why, ...(supersededBy === undefined ? {} : { supersededBy }) },
  ],
});

/** Forgetting is for good: the history of the chain is deleted as well. */
const forgotten = (state: State, target: Fact): State => {
  const isFormer = state.former.some(({ id }) => id === target.id);
  const fact = latestOf(state, target) ?? (isFormer ? target : undefined);
  if (fact === undefined) return state;
  return {
    ...state,
    current: state.current.filter(({ id }) => id !== fact.id),
    forgotten: [...state.forgotten, fact],
    former: state.former.filter(
      ({ chain, supersededBy }) => chain !== fact.chain && supersededBy !== fact.id,
    ),
  };
};

const consolidated = (state: State, { now, maxFacts }: Limits): State => {
  const expired = state.current.filter(({ expiresAt = Infinity }) => expiresAt <= now);
  const fresh = expired.reduce((left, fact) => retired(left, fact, 'expired', now), state);
  const newestFirst = fresh.current
    .map((fact, index) => ({ fact, index }))
    .sort((a, b) => b.fact.validFrom - a.fact.validFrom || b.index - a.index)
    .map(({ fact }) => fact);
  const merged = newestFirst.reduce<{ readonly state: State; readonly kept: readonly Fact[] }>(
    (left, fact) => {
      const other = left.kept.find((it) => isDuplicate(it, fact));
      return other === undefined
        ? { ...left, kept: [...left.kept, fact] }
        : { ...left, state: retired(left.state, fact, 'merged', now, other.id) };
    },
    { state: fresh, kept: [] },
  );
  return merged.kept
    .slice(maxFacts)
    .reduce((left, fact) => retired(left, fact, 'evicted', now), merged.state);
};

const isDuplicate = (a: Fact, b: Fact): boolean =>
  a.chain === b.chain || wordsOf(a.text) === wordsOf(b.text);

/** The words of text without case and punctuation: “Likes tea.” is “likes tea”, and not “does not like tea”. */
export const wordsOf = (text: string): string => {
  const spaced = normalized(text).replace(withoutSpaces, ' $& ');
  return (spaced.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [spaced]).join(' ');
};

/** Han, Hiragana, Katakana, Thai, Lao, Khmer and Burmese have no spaces between words: each character counts as one. */
const withoutSpaces =
  /[\p{sc=Hani}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/gu;

/** FNV-1a with 64 bits, http://www.isthe.com/chongo/tech/comp/fnv: ids need no secrecy, and differ within one user. */
const hashOf = (text: string): string =>
  new TextEncoder()
    .encode(text)
    .reduce((hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime), offset)
    .toString(36);

const offset = 0xcbf29ce484222325n;
const prime = 0x100000001b3n;
