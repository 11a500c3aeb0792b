import { expectTypeOf } from 'expect-type';
import type {
  AgentOptions,
  approval,
  CallOptions,
  guardOutput,
  on,
  preset,
  retry,
  suspend,
  timeouts,
  ToolDefinition,
} from '../index.js';
import { createAgent, type Model, tool } from '../index.js';
import type { reflect } from '../layers/planning/index.js';
import type { Session, sessions } from '../layers/sessions/index.js';
import type { JournalOptions } from '../journal/index.js';

/** The optional keys that refuse `undefined`, also those of options within options. */
type Refuses<Options> = {
  [Key in keyof Options]-?: object extends Pick<Options, Key>
    ? undefined extends Options[Key]
      ? never
      : Key
    : never;
}[keyof Options];

interface Given {
  agent: AgentOptions;
  limits: NonNullable<AgentOptions['limits']>;
  timeouts: NonNullable<NonNullable<AgentOptions['limits']>['timeouts']>;
  ramp: NonNullable<NonNullable<AgentOptions['limits']>['temperatureRamp']>;
  request: NonNullable<AgentOptions['request']>;
  call: CallOptions;
  tool: ToolDefinition<unknown>;
  repeat: NonNullable<ToolDefinition<unknown>['retry']>;
  approval: NonNullable<Parameters<typeof approval>[1]>;
  guardOutput: NonNullable<Parameters<typeof guardOutput>[1]>;
  on: NonNullable<Parameters<typeof on>[2]>;
  preset: NonNullable<Parameters<typeof preset>[2]>;
  retry: NonNullable<Parameters<typeof retry>[1]>;
  silence: Parameters<typeof timeouts>[1];
  suspend: NonNullable<Parameters<typeof suspend>[1]>;
  sessions: NonNullable<Parameters<typeof sessions>[1]>;
  session: NonNullable<Parameters<Session['call']>[1]>;
  journal: JournalOptions;
  reflect: NonNullable<Parameters<typeof reflect>[0]>;
}
expectTypeOf<{ [Name in keyof Given]: Refuses<Given[Name]> }[keyof Given]>().toBeNever();

// What programs compute: a setting that may be absent.
declare const model: Model;
declare const ms: number | undefined;
declare const name: string | undefined;
createAgent({ model, name, limits: { timeouts: { callMs: ms } }, request: { maxTokens: ms } });
void createAgent({ model }).call('?', { callId: name, metadata: undefined });
tool({ name: 'q', description: 'Asks.', timeoutMs: ms, retry: { attempts: ms }, run: () => 1 });
