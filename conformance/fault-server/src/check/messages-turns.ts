import { isRecord } from '../is-record.js';
import { recordsIn, repeated, stringAt } from './records.js';
import type { Shape } from './shape.js';

type Block = Readonly<Record<string, unknown>>;

/** What one side has said until the other spoke. */
interface Turn {
  readonly role: string;
  readonly blocks: readonly Block[];
}

/** The turns of a body: consecutive messages of one role are one. */
const turnsOf = (body: unknown): readonly Turn[] =>
  recordsIn(isRecord(body) ? body['messages'] : []).reduce<readonly Turn[]>((turns, message) => {
    const role = stringAt(message, 'role');
    const { content } = message;
    const blocks =
      typeof content === 'string' ? [{ type: 'text', text: content }] : recordsIn(content);
    const last = turns.at(-1);
    return last?.role === role
      ? [...turns.slice(0, -1), { role, blocks: [...last.blocks, ...blocks] }]
      : [...turns, { role, blocks }];
  }, []);

const idsOf = (turn: Turn | undefined, type: string, key: string): readonly string[] =>
  (turn?.blocks ?? [])
    .filter((block) => block['type'] === type)
    .map((block) => stringAt(block, key));

const usesOf = (turn: Turn | undefined): readonly string[] => idsOf(turn, 'tool_use', 'id');
const resultsOf = (turn: Turn | undefined): readonly string[] =>
  idsOf(turn, 'tool_result', 'tool_use_id');

/** The results of all tools come in the next message, first thing in it, and nothing else is a result. */
export const messagesPairing: Shape = (body) => {
  const turns = turnsOf(body);
  const problems = turns.flatMap((turn, at) => pairingProblems(turn, turns[at - 1], turns[at + 1]));
  const twice = repeated(turns.flatMap(usesOf)).map(
    (id) => `'tool_use' ids must be unique: ${id}.`,
  );
  return [...problems, ...twice];
};

const pairingProblems = (
  turn: Turn,
  before: Turn | undefined,
  behind: Turn | undefined,
): readonly string[] => {
  const results = resultsOf(turn);
  const answered = resultsOf(behind);
  const asked = usesOf(before);
  const late = turn.blocks.slice(results.length).some((block) => block['type'] === 'tool_result');
  return [
    ...usesOf(turn)
      .filter((id) => !answered.includes(id))
      .map(
        (id) => `'tool_use' ids were found without 'tool_result' blocks immediately after: ${id}.`,
      ),
    ...results
      .filter((id) => !asked.includes(id))
      .map((id) => `unexpected 'tool_use_id' found in 'tool_result' blocks: ${id}.`),
    ...repeated(results).map((id) => `each 'tool_use' must have a single result: ${id}.`),
    ...(late ? [`'tool_result' blocks must come first in the message.`] : []),
  ];
};

/**
 * Each call of a tool that runs at the vendor has its result behind it, and each result its call before it, both within one
 * answer. Results of other tools do not end it; anything else that a user says does. The last answer may go on.
 */
export const messagesServerTools: Shape = (body) => {
  const turns = turnsOf(body);
  const problems: string[] = [];
  let open = new Map<string, string>();
  let called = new Set<string>();
  for (const { role, blocks } of turns) {
    if (role === 'user') {
      if (blocks.every((block) => block['type'] === 'tool_result')) continue;
      problems.push(...[...open].map(([id, name]) => aloneIs(id, name)));
      open = new Map();
      called = new Set();
    }
    for (const block of blocks) {
      const type = stringAt(block, 'type');
      const caller = stringAt(block['caller'], 'tool_id');
      if (caller !== '' && !called.has(caller)) problems.push(`'caller' is no call: ${caller}.`);
      if (/^(server|mcp)_tool_use$/.test(type)) {
        open.set(stringAt(block, 'id'), stringAt(block, 'name'));
        called.add(stringAt(block, 'id'));
      }
      const id = stringAt(block, 'tool_use_id');
      if (type.endsWith('_tool_result') && !open.delete(id)) {
        problems.push(`unexpected 'tool_use_id' found in '${type}' blocks: ${id}.`);
      }
    }
  }
  return problems;
};

const aloneIs = (id: string, name: string): string =>
  `'${name}' tool use with id '${id}' was found without a corresponding '${name}_tool_result' block.`;

/** A user begins; what the model is to go on with does not end in white space. */
export const messagesOrder: Shape = (body) => {
  const turns = turnsOf(body);
  const last = turns.at(-1);
  const text = stringAt(last?.blocks.at(-1), 'text');
  return [
    ...(turns[0]?.role === 'user' ? [] : [`first message must use the 'user' role.`]),
    ...(last?.role === 'assistant' && /\s$/.test(text)
      ? [`final assistant content cannot end with trailing whitespace.`]
      : []),
  ];
};

/** With thinking switched on, the turn that is still going on begins with what was thought. */
export const messagesThinking: Shape = (body) => {
  const thinking = isRecord(body) ? body['thinking'] : undefined;
  if (stringAt(thinking, 'type') !== 'enabled') return [];
  const turns = turnsOf(body);
  const last = turns.findLast(({ role }) => role === 'assistant');
  const first = stringAt(last?.blocks[0], 'type');
  const goesOn = turns.at(-1) === last || resultsOf(turns.at(-1)).length > 0;
  return last === undefined || !goesOn || /^(redacted_)?thinking$/.test(first)
    ? []
    : [
        `Expected 'thinking' or 'redacted_thinking', but found '${first}'. When 'thinking' is enabled, ` +
          `a final 'assistant' message must start with a thinking block.`,
      ];
};
