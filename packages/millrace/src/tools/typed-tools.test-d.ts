import { expectTypeOf } from 'expect-type';
import { type Observable, of } from 'rxjs';
import { z } from 'zod';
import {
  acceptExtras,
  type Agent,
  type AgentEvent,
  contextKey,
  createAgent,
  type EventOf,
  isEvent,
  type JsonSchema,
  type Model,
  only,
  outputOf,
  output,
  preset,
  type Reply,
  requireApproval,
  type Tool,
  tool,
  type ToolCallBlock,
  toolGroup,
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

// Tools that are wrapped or grouped keep their types.
const user = contextKey<string>('city');
const wrapped = createAgent({
  model,
  tools: [
    preset(weather, { city: user }),
    acceptExtras(pay, 'euros'),
    toolGroup({ name: 'time', description: 'The time.', tools: [now] }),
  ],
});
for (const each of (await wrapped.call('?')).toolCalls) {
  expectTypeOf(each.name).toEqualTypeOf<'weather' | 'pay' | 'now'>();
  // The model does not see what the program sets, unless it may override it.
  if (each.name === 'weather' && !each.isError) {
    expectTypeOf(each.input.city).toEqualTypeOf<string | undefined>();
    expectTypeOf(each.input.days).toEqualTypeOf<number | undefined>();
  }
}
// @ts-expect-error there is no such parameter
acceptExtras(weather, 'town');
// @ts-expect-error a number is no city
preset(weather, { city: 5 });
// @ts-expect-error nor is the value of this key
preset(weather, { city: contextKey<number>('number') });
preset(anyTool, { anything: 1 });
acceptExtras(anyTool, 'anything');

// Events are typed by the tools of the agent.
agent.stream$('?').subscribe((event) => {
  if (event.type === 'postActing' && event.toolCall.name === 'weather') {
    expectTypeOf(event.toolCall.input).toEqualTypeOf<{ city: string; days?: number }>();
  }
  if (event.type === 'approvalRequested') {
    expectTypeOf(event.toolCall.name).toEqualTypeOf<'weather' | 'pay' | 'now'>();
  }
  // @ts-expect-error there is no such tool
  if (event.type === 'preActing' && event.toolCall.name === 'wether') return;
});
agent
  .with()
  .stream$('?')
  .pipe(only('postActing'))
  .subscribe(({ toolCall }) => {
    if (toolCall.name === 'pay') expectTypeOf(toolCall.input.euros).toEqualTypeOf<string>();
  });
for await (const event of sessions(agent).open('s').stream('?')) {
  if (isEvent(event, 'actingChunk') && event.toolCall.name === 'weather') {
    expectTypeOf(event.toolCall.input.city).toEqualTypeOf<string>();
  }
}
expectTypeOf<EventOf<'preActing'>['toolCall']>().toEqualTypeOf<ToolCallBlock>();
createAgent({ model, tools: [anyTool] })
  .stream$('?')
  .subscribe((event) => {
    if (event.type === 'preActing') {
      expectTypeOf(event.toolCall.input['city']).toEqualTypeOf<unknown>();
    }
  });
const events$: Observable<AgentEvent> = agent.stream$('?');
expectTypeOf(events$).toEqualTypeOf<Observable<AgentEvent>>();
// Arguments whose type has no index signature.
interface Place {
  readonly city: string;
}
declare const placeSchema: z.ZodType<Place, Place>;
const placed = createAgent({
  model,
  tools: [tool({ name: 'go', description: 'Goes.', input: placeSchema, run: () => 1 })],
});
const anyAgent: Agent = placed;
expectTypeOf(anyAgent).toExtend<Agent>();
placed.stream$('?').subscribe((event) => {
  if (event.type === 'preActing') {
    expectTypeOf(event.toolCall.input.city).toEqualTypeOf<string>();
  }
});

// A stream that is pulled returns the reply.
const stream = agent.stream('?', { use: [output(place)] });
expectTypeOf(await stream.reply).toEqualTypeOf<Reply<{ city: string }, RunOf<typeof agent>>>();
const pulled = async function* () {
  const last = yield* agent.stream('?');
  expectTypeOf(last.toolCalls).toEqualTypeOf<typeof reply.toolCalls>();
};
expectTypeOf(pulled).toBeFunction();
type RunOf<Given> = Given extends Agent<unknown, infer Run> ? Run : never;

// The root of a schema is an object.
const named = { name: 'x', description: 'y', run: () => 1 };
// @ts-expect-error a string is no object
tool({ ...named, input: z.string() });
// @ts-expect-error a list is no object
tool({ ...named, input: z.array(z.string()) });
// @ts-expect-error it may be anything
tool({ ...named, input: z.unknown() });
// @ts-expect-error a string is no object
output(z.string());
// @ts-expect-error a list is no object
output(z.array(z.string()));
// @ts-expect-error a string is no object
jsonSchema({ type: 'string' });
// @ts-expect-error a list is no object
jsonSchema({ type: 'array', items: {} });
// @ts-expect-error an object or nothing
jsonSchema({ type: ['object', 'null'] });
// @ts-expect-error the type of its root is missing
jsonSchema({ properties: {} });
declare const written: JsonSchema;
jsonSchema(written);
tool({ ...named, input: z.record(z.string(), z.number()) });
tool({ ...named, input: z.object({ length: z.number() }) });
tool({ ...named, input: z.object({}) });
