import { expectTypeOf } from 'expect-type';
import { of } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  createAgent,
  type Model,
  outputOf,
  output,
  type Reply,
  requireApproval,
  type Tool,
  tool,
  type ToolRun,
  toolRuns,
} from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { jsonSchema } from '../schema/index.js';

declare const model: Model;
declare const anyTool: Tool;

const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  }),
  run: ({ city }) => city,
});
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ euros: z.coerce.number<string>(), note: z.string().default('') }),
  run: ({ euros }) => {
    expectTypeOf(euros).toEqualTypeOf<number>();
  },
});
const now = tool({ name: 'now', description: 'Returns the time.', run: () => 1 });

const agent = createAgent({ model, tools: [weather, requireApproval(pay, true), now] });
const reply = await agent.call('?');
expectTypeOf(reply.toolCalls[0]?.name ?? 'now').toEqualTypeOf<'weather' | 'pay' | 'now'>();
for (const run of reply.toolCalls) {
  if (run.name === 'weather' && !run.isError) {
    expectTypeOf(run.input).toEqualTypeOf<{ city: string; days?: number }>();
    expectTypeOf(run.output).toEqualTypeOf<string>();
  }
  // What the model sent, before the schema transforms it.
  if (run.name === 'pay' && !run.isError) {
    expectTypeOf(run.input).toEqualTypeOf<{
      euros: string;
      note?: string | undefined;
    }>();
  }
  // The arguments of a failed call may be anything.
  if (run.name === 'weather' && run.isError) {
    expectTypeOf(run.input).toEqualTypeOf<Readonly<Record<string, unknown>>>();
  }
  // @ts-expect-error there is no such tool
  if (run.name === 'wether') continue;
}

// In sessions, streams of calls and events.
const said = await sessions(agent).open('s').call('?');
expectTypeOf(said.toolCalls).toEqualTypeOf<typeof reply.toolCalls>();
of('?')
  .pipe(agent.asOperator())
  .subscribe(({ toolCalls }) => {
    expectTypeOf(toolCalls).toEqualTypeOf<typeof reply.toolCalls>();
  });
agent
  .stream$('?')
  .pipe(toolRuns({ of: weather }))
  .subscribe((run) => {
    expectTypeOf(run.name).toEqualTypeOf<'weather'>();
    if (!run.isError) expectTypeOf(run.input.city).toEqualTypeOf<string>();
  });
expectTypeOf(agent.with().call$('?')).toEqualTypeOf(agent.call$('?'));

// Any agent is an agent; without known tools, names and inputs are open.
const agents: readonly Agent[] = [agent, createAgent({ model })];
expectTypeOf(agents).toExtend<readonly Agent[]>();
const open = await createAgent({ model, tools: [anyTool] }).call('?');
expectTypeOf(open.toolCalls).toEqualTypeOf<readonly ToolRun[]>();
const [run] = (await createAgent({ model }).call('?')).toolCalls;
expectTypeOf(run?.name ?? '').toEqualTypeOf<string>();
expectTypeOf(run?.input ?? {}).toEqualTypeOf<Readonly<Record<string, unknown>>>();
declare const list: readonly Tool[];
expectTypeOf((await createAgent({ model, tools: list }).call('?')).toolCalls).toEqualTypeOf<
  readonly ToolRun[]
>();
const plain: Reply = reply;
expectTypeOf(plain.text).toEqualTypeOf<string>();

// The output of a reply, or an error with the reason.
const place = z.object({ city: z.string() });
expectTypeOf(outputOf(await agent.call('?', { use: [output(place)] }))).toEqualTypeOf<{
  city: string;
}>();
