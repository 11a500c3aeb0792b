import {
  type Agent,
  type Approver,
  createAgent,
  type Message,
  requireApproval,
  suspend,
  textOf,
  type Tool,
  tool,
  type ToolCallBlock,
} from 'millrace';
import type { Journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { agentTool } from 'millrace/teams';
import { map, type Observable, toArray } from 'rxjs';
import { clerkPlanOf, type Plan } from './plan.js';
import { type Pace, scriptModel } from './script-model.js';

/** What is done about tools of which nobody knows how they ended. */
export type UncertainMode = 'report' | 'rerun' | 'ask';

/** Something that a tool does outside. */
export interface Effect {
  readonly tool: string;
  readonly item: string;
  readonly callId: string;
  /** The idempotency key, without its random part. */
  readonly key: string;
  readonly seed: string;
  readonly isIdempotent: boolean;
}

/** Who plays a script, and where it is written down. */
export interface ScriptOptions {
  /** Default: `script`. */
  readonly name?: string;
  /** The plan of a call, by its messages. */
  readonly planFor: (messages: readonly Message[]) => Plan;
  readonly pace: Pace;
  /** Does what a tool does. */
  readonly effect$: (effect: Effect) => Observable<unknown>;
  /** Decides about each `refund`. */
  readonly approve: Approver;
  /** Whether `sign` suspends the call. Default: true. */
  readonly suspends?: boolean;
  readonly journal?: Journal;
}

/** Makes the agent of a script. It is the same in every life of a call. */
export const scriptAgent = ({
  name = 'script',
  planFor,
  pace,
  effect$,
  approve,
  suspends = true,
  journal,
}: ScriptOptions): Agent => {
  const effects = ['pay', 'book', 'wait'].map((effect) => effectTool(effect, effect$));
  const refund = requireApproval(effectTool('refund', effect$), approve);
  const sign = effectTool('sign', effect$, suspends);
  const limits = { maxIterations: 10 };
  const clerk = createAgent({
    name: 'clerk',
    model: scriptModel(([task]) => clerkPlanOf(task === undefined ? '' : textOf(task)), pace),
    tools: effects.filter(({ name: toolName }) => toolName === 'pay' || toolName === 'book'),
    limits,
  });
  return createAgent({
    name,
    model: scriptModel(planFor, pace),
    tools: [...effects, refund, sign, agentTool(clerk, { description: 'Does what is left over.' })],
    limits,
    ...(journal === undefined ? {} : { use: [journal] }),
  });
};

/** What a call of the script is asked. Of every second one, it is so long that the calls of its session share it. */
export const taskOf = (seed: number): string =>
  `Do what the script says.${seed % 2 === 0 ? '' : ' Take your time.'.repeat(1_000)}`;

/** The conversation of a call: those that go on with it are in the same. */
export const sessionIdOf = (callId: string): string => `of ${outermost(callId)}`;

/** The call that somebody has made of which this one is a part: ids of calls below, and of those that go on, begin with it. */
export const outermost = (callId: string): string => callId.split(/[+/~]/u)[0] ?? callId;

/** What a use of a tool is about. */
export const itemOf = ({ input }: ToolCallBlock): string =>
  String(input['item'] ?? input['user_prompt']);

/** What a tool says that has done what it does. */
const doneText = (name: string, item: string): string => `${name} ${item} is done`;

const effectTool = (name: string, effect$: ScriptOptions['effect$'], suspends = false): Tool => {
  const isIdempotent = name === 'book' || name === 'wait';
  return tool({
    name,
    description: `Does a ${name}.`,
    input: jsonSchema({
      type: 'object',
      properties: { item: { type: 'string' } },
      required: ['item'],
    }),
    idempotent: isIdempotent,
    run: ({ item }, { callId, toolCallId, idempotencyKey }) =>
      effect$({
        tool: name,
        item,
        callId,
        key: `${callId}/${toolCallId}`,
        seed: idempotencyKey.slice(`${callId}/${toolCallId}/`.length),
        isIdempotent,
      }).pipe(
        toArray(),
        map(() => (suspends ? suspend({ item }) : doneText(name, item))),
      ),
  });
};
