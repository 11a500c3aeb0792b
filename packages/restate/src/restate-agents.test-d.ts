import type { Reply } from 'millrace';
import type { Context, serve } from '@restatedev/restate-sdk';
import type { AgentHandlers, RestateAgents } from './index.js';

declare const context: Context;
declare const agents: RestateAgents;
declare const listen: typeof serve;

// A handler of another service calls an agent.
const client = context.objectClient<AgentHandlers>({ name: 'support' }, 'user-42');
const { reply, callId } = await client.call({
  input: 'Hi.',
  options: { limits: { maxIterations: 3 } },
});
export const answer: Reply = reply;
const { status } = await client.steer({ callId, input: 'Faster.' });
export const sent: 'sent' | 'notRunning' = status;
context
  .objectSendClient<AgentHandlers>({ name: 'support' }, 'user-42')
  .decide({ callId, toolCallId: 't', verdict: { approved: false, reason: 'No.' } });
// @ts-expect-error JSON has no layers.
await client.call({ input: 'Hi.', options: { use: [] } });

await listen({ services: agents.services });
