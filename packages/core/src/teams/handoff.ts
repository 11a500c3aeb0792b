import { concatMap, EMPTY, map, type Observable, of, takeLast } from 'rxjs';
import type { CallOptions } from '../call-options.js';
import { createStep } from '../compose/step-runs.js';
import { misuse } from '../errors.js';
import type { Agent } from '../agent.js';
import type { OutputOf } from '../callable.js';
import type { Input, InputMessage } from '../input.js';
import { isContentBlock, textBlock } from '../message.js';
import { wordsBefore } from '../run-call.js';
import {
  checkOptions,
  isFunction,
  isObject,
  isText,
  listOf,
  type Rule,
  wholeNumber,
} from '../options.js';
import type { Reply } from '../reply.js';
import type { InputSchema } from '../schema.js';
import { asAgent, type StepAgentOptions, stepAgentRules } from './as-agent.js';
import { carryWords, type HandoffFilter, lastOfUser } from './handoff-filters.js';
import { inTurns$ } from './take-turns.js';
import { messagesIn } from './messages-in.js';
import { createTransfers, type Member, type Move, nobody, type Transfers } from './transfers.js';
import { addTools } from '../tools/added-tools.js';

/** What an agent is made of whose conversations move between agents. */
export interface HandoffOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends StepAgentOptions<Output> {
  readonly agents: readonly Member[];
  /** Who begins a conversation, by name. Default: the first. */
  readonly start?: string;
  /** What the next one is shown. Default: `carryWords`. */
  readonly filter?: HandoffFilter;
  /** How often a call may move; who has it then keeps it, and is shown nobody to hand it to. Default: 10. */
  readonly maxHandoffs?: number;
  /** Who may hand over to whom, by name; who is not in it may to nobody. Default: all to all. */
  readonly allow?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Makes an agent of several, between which its conversations move: each is shown a tool for each other one, `transfer_to_…`, and who uses it has
 * spoken; the other one goes on with the conversation. Whoever has it speaks for the whole, to its user. In a session, the next message goes to who
 * answered last. An agent that is made of steps can be handed to, but hands over to nobody.
 */
export const handoff = <const Output extends InputSchema | undefined = undefined>(
  options: HandoffOptions<Output>,
): Agent<OutputOf<Output, unknown>> => {
  checkOptions('handoff()', options, rules, ['agents']);
  const { agents, start, filter = carryWords, maxHandoffs = 10, allow, ...own } = options;
  const transfers = createTransfers(agents, allow);
  const names = [...transfers.agents.keys()];
  if (start !== undefined && !names.includes(start)) {
    throw nobody('start', start, names);
  }
  const play: Play = { transfers, filter, maxHandoffs };
  const step = createStep((input, given) => {
    const { history = [] } = given;
    const active = lastOf(history, names) ?? start ?? names[0] ?? '';
    return inTurns$<Turn>({ active, history, input, moves: 0 }, (turn) =>
      'reply' in turn ? EMPTY : spoken$(turn, given, play),
    ).pipe(
      takeLast(1),
      concatMap((turn) => ('reply' in turn ? of(turn.reply) : EMPTY)),
    );
  });
  return asAgent<typeof step, Output>(step, { name: 'handoff', ...own });
};

/** Whose turn it is, and with what; or how it ended. */
type Turn = OpenTurn | { readonly reply: Reply };

interface OpenTurn {
  readonly active: string;
  readonly history: readonly InputMessage[];
  readonly input: Input;
  readonly moves: number;
}

interface Play {
  readonly transfers: Transfers;
  readonly filter: HandoffFilter;
  readonly maxHandoffs: number;
}

/** Who had the conversation last. */
const lastOf = (history: readonly InputMessage[], names: readonly string[]): string | undefined => {
  const said = history.findLast(
    (it) => it.role === 'assistant' && it.name !== undefined && names.includes(it.name),
  );
  return said?.role === 'assistant' ? said.name : undefined;
};

/** Lets the one speak who has the conversation. */
const spoken$ = (turn: OpenTurn, given: CallOptions, play: Play): Observable<Turn> => {
  const { active, history, input, moves } = turn;
  const { transfers, maxHandoffs } = play;
  const agent = transfers.agents.get(active);
  if (agent === undefined) throw nobody('start', active, [...transfers.agents.keys()]);
  const tools = moves < maxHandoffs ? transfers.toolsOf(active) : [];
  const { use = [] } = given;
  const added = tools.length === 0 ? {} : { use: [...use, addTools(...tools)] };
  return agent.call$(input, { ...given, history, ...added }).pipe(
    map((reply): Turn => {
      const move = transfers.moveIn(reply);
      // Whoever speaks within a member, the member has the conversation.
      return move === undefined
        ? { reply: { ...reply, name: active } }
        : moved(turn, reply, move, play);
    }),
  );
};

const moved = (
  { active: from, history, input, moves }: OpenTurn,
  reply: Reply,
  { to, reason }: Move,
  { filter, transfers }: Play,
): OpenTurn => {
  const said = wordsBefore(reply).map(({ content }): InputMessage => ({
    role: 'assistant',
    name: from,
    content: content.filter(isContentBlock),
  }));
  const why = reason === undefined || reason.trim() === '' ? '' : ` ${reason}`;
  const leaving: InputMessage = {
    role: 'assistant',
    name: from,
    content: [textBlock(`I hand over to ${to}.${why}`)],
  };
  const toolUses = reply.toolUses.filter(({ name }) => !transfers.isTransfer(name));
  const carried = filter([...history, ...messagesIn(input), ...said, leaving], {
    from,
    to,
    toolUses,
    ...(reason === undefined ? {} : { reason }),
  });
  if (carried.length === 0) throw nothingCarried();
  const at = lastOfUser(carried);
  return { active: to, history: carried.slice(0, at), input: carried.slice(at), moves: moves + 1 };
};

const nothingCarried = () =>
  misuse(
    "handoff(): the 'filter' has left nothing of the conversation. Leave what a user has said last.",
  );

const rules: Readonly<Record<keyof HandoffOptions, Rule>> = {
  ...stepAgentRules,
  agents: listOf('agents with their descriptions'),
  start: isText,
  filter: isFunction,
  maxHandoffs: wholeNumber(0),
  allow: isObject,
};
