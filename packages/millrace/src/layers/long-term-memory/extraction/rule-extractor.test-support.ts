import { type Model, textOf } from '../../../index.js';
import { of } from 'rxjs';

/**
 * A model without a language model: it reads the known facts and the new messages from the request, and answers with
 * operations by patterns of English sentences. It knows no dialogue; what it cannot read, it misses.
 */
export const ruleExtractor = (): Model => ({
  name: 'rules',
  stream$: (request) => {
    const asked = textOf(request.messages.at(-1) ?? { content: [] });
    const answer = JSON.stringify({ operations: operationsFor(asked) });
    const usage = {
      inputTokens: tokensIn((request.system ?? '') + asked),
      outputTokens: tokensIn(answer),
    };
    return of(
      { type: 'text', text: answer } as const,
      { type: 'usage', usage } as const,
      { type: 'finish', finish: 'stop' } as const,
    );
  },
});

/** An estimate: four characters of English are about a token. */
export const tokensIn = (text: string): number => Math.ceil(text.length / 4);

interface KnownFact {
  readonly id: string;
  readonly text: string;
  readonly attribute?: string;
}

interface Asked {
  readonly facts: readonly KnownFact[];
  readonly messages: readonly {
    readonly id: string;
    readonly from: string;
    readonly text: string;
  }[];
}

interface Statement {
  readonly op: 'state' | 'forget';
  readonly text: string;
  readonly attribute?: string | undefined;
  readonly quote: string;
  readonly source: string;
}

const operationsFor = (asked: string): readonly object[] => {
  const { facts, messages } = JSON.parse(asked) as Asked;
  const statements = messages
    .filter(({ from }) => from === 'user')
    .flatMap(({ id, text }) => statementsIn(text).map((it) => ({ ...it, source: id })));
  const latest = statements.filter(
    ({ attribute, op }, index) =>
      op === 'forget' ||
      attribute === undefined ||
      !statements.slice(index + 1).some((it) => it.attribute === attribute),
  );
  const operations = latest.flatMap((statement) => operationsOf(statement, facts));
  return operations.length === 0 ? [{ op: 'none', reason: 'No fact is stated.' }] : operations;
};

const operationsOf = (
  { op, text, attribute, quote, source }: Statement,
  facts: readonly KnownFact[],
): readonly object[] => {
  const about = { sources: [source], quote };
  if (op === 'forget') {
    const terms = contentWords(text);
    return facts
      .filter(
        (fact) => terms.length > 0 && terms.every((term) => fact.text.toLowerCase().includes(term)),
      )
      .map(({ id }) => ({ op: 'forget', id, reason: 'No longer wanted or true.', ...about }));
  }
  const fields = { text, subject: 'user', attribute, ...about };
  const known = facts.find((fact) => attribute !== undefined && fact.attribute === attribute);
  if (known === undefined) return [{ op: 'add', reason: 'The user states it.', ...fields }];
  return known.text === text
    ? []
    : [{ op: 'update', id: known.id, reason: 'It changed.', ...fields }];
};

const contentWords = (text: string): readonly string[] =>
  (text.toLowerCase().match(/[\p{L}]{3,}/gu) ?? []).filter((word) => !fillers.has(word));

const fillers = new Set(
  'the that this and have has had play plays love loves like likes live lives work works drink eat about please all fact'.split(
    ' ',
  ),
);

const statementsIn = (message: string): readonly Omit<Statement, 'source'>[] =>
  message
    .split(/(?<=[.!?])\s+|\n+/u)
    .filter((sentence) => !isNoStatement(sentence))
    .flatMap((sentence) =>
      sentence.split(/(?:,|;|:| but | and (?=I\b))\s*/u).flatMap((clause) => {
        const isQuestion = sentence.endsWith('?') && sentence.includes(clause + '?');
        return isQuestion ? [] : rules.flatMap((rule) => read(rule, clause.trim())).slice(0, 1);
      }),
    );

/** Hypotheses, jokes, orders to the assistant, and what other people say. */
const isNoStatement = (sentence: string): boolean =>
  /^(?:if|suppose|imagine|assume|say|what if|would|could|i wish|ignore|system|assistant)\b/iu.test(
    sentence,
  ) ||
  /\b(?:kidding|joking|the user|instructions)\b/iu.test(sentence) ||
  /["“”]/u.test(sentence) ||
  /^my (?:\w+ )?(?:sister|brother|mother|father|friend|neighbour|neighbor|colleague|boss)\b/iu.test(
    sentence,
  );

interface ReadingRule {
  readonly pattern: RegExp;
  readonly make: (
    object: string,
  ) => Pick<Statement, 'text' | 'attribute'> & { readonly op?: 'forget' };
}

const read = (
  { pattern, make }: ReadingRule,
  clause: string,
): readonly Omit<Statement, 'source'>[] => {
  const found = pattern.exec(clause);
  const object = trimmed(found?.[1] ?? '');
  if (found === null || object === '') return [];
  const { op = 'state', text, attribute } = make(object);
  return [{ op, text, attribute, quote: found[0] }];
};

const trimmed = (object: string): string =>
  object
    .replace(
      /\s*\b(?:now|instead|anymore|any more|by the way|when .*|at the moment|last \w+)\b.*$/iu,
      '',
    )
    .replace(/[.!?]+$/u, '')
    .trim();

/** The last word names the thing: seats, units and kinds of tea replace each other. */
const headOf = (object: string): string => object.toLowerCase().split(' ').at(-1) ?? '';

const withoutArticle = (object: string): string => object.replace(/^(?:an?|the|my)\s+/iu, '');

const taste = (verb: string) => (object: string) => ({
  text: `${verb} ${object}.`,
  attribute: `taste: ${headOf(object)}`,
});

/** Patterns with one group, the object. */
const rules: readonly ReadingRule[] = [
  {
    pattern: /\bforget (?:that |about )?(?:I |my )?(.+)/iu,
    make: (object) => ({ op: 'forget', text: object }),
  },
  {
    pattern: /\bI (?:sold|gave away|no longer have|don['’]t have) (.+)/u,
    make: (object) => ({ op: 'forget', text: object }),
  },
  {
    pattern:
      /\bI(?:['’]m)? (?:now |currently )?(?:live|living|moved|have moved) (?:in|to) (\p{Lu}[\p{L}-]*(?: \p{Lu}[\p{L}-]*)*)/u,
    make: (object) => ({ text: `Lives in ${object}.`, attribute: 'home city' }),
  },
  {
    pattern: /\bI (?:now )?work as (.+)/u,
    make: (object) => ({ text: `Works as ${object}.`, attribute: 'job' }),
  },
  {
    pattern: /\bI (?:now )?work (?:at|for) (.+)/u,
    make: (object) => ({ text: `Works at ${object}.`, attribute: 'job' }),
  },
  {
    pattern: /\bI(?:['’]m| am) allergic to (.+)/u,
    make: (object) => ({
      text: `Is allergic to ${object}.`,
      attribute: `allergy: ${headOf(object)}`,
    }),
  },
  {
    pattern: /\bI(?:['’]m| am) (?:an? )?(vegetarian|vegan|pescatarian)\b/u,
    make: (object) => ({ text: `Is ${object}.`, attribute: 'diet' }),
  },
  { pattern: /\bI (?:do not|don['’]t) drink (.+)/u, make: taste('Does not drink') },
  { pattern: /\bI (?:do not|don['’]t) eat (.+)/u, make: taste('Does not eat') },
  { pattern: /\bI (?:do not|don['’]t) (?:like|love|enjoy) (.+)/u, make: taste('Does not like') },
  { pattern: /\bI (?:really )?(?:like|love|enjoy) (.+)/u, make: taste('Likes') },
  { pattern: /\bI (?:really )?(?:hate|dislike) (.+)/u, make: taste('Dislikes') },
  {
    pattern: /\bI prefer (.+)/u,
    make: (object) => ({ text: `Prefers ${object}.`, attribute: `preference: ${headOf(object)}` }),
  },
  {
    pattern: /\bI play (.+)/u,
    make: (object) => ({
      text: `Plays ${object}.`,
      attribute: `plays: ${withoutArticle(object).split(' ')[0] ?? ''}`,
    }),
  },
  {
    pattern: /\bI go (\w+ing\b.*)/u,
    make: (object) => ({
      text: `Goes ${object}.`,
      attribute: `habit: ${object.split(' ')[0] ?? ''}`,
    }),
  },
  { pattern: /\bI have ((?:an? |two |three ).+)/u, make: (object) => ({ text: `Has ${object}.` }) },
  {
    pattern: /\b[Mm]y name is (\p{Lu}\p{L}+)/u,
    make: (object) => ({ text: `The name of the user is ${object}.`, attribute: 'name' }),
  },
];
