import { type Agent, createAgent, type Model, type ModelChunk, textOf } from '../../index.js';
import { agentTool } from '../../layers/teams/index.js';
import { text, toolCall } from '../../testing/index.js';
import type { Process } from './process.test-support.js';
import { options, script } from './set-ups.test-support.js';

export const pay = (to: string) => toolCall('pay', { to });
export const ask = (name: string, prompt: string) => toolCall(name, { user_prompt: prompt });

/** An agent below the one that is cut. */
export const below = (
  process: Process,
  name: string,
  ...turns: readonly (readonly ModelChunk[])[]
): Agent =>
  createAgent({
    name,
    model: script(process, ...turns),
    tools: [process.effect('pay'), process.effect('slow', { ms: 20 })],
  });

/** Says who has said what before. */
export const listener = (process: Process, name: string, ...more: readonly ModelChunk[]): Agent =>
  createAgent({
    name,
    model: process.model(({ messages }) => [
      ...more,
      text(`${name} heard ${messages.length}, last ${messages.map(textOf).at(-1) ?? ''}.`),
    ]),
  });

export const leader = (process: Process, model: Model, ...agents: readonly Agent[]): Agent =>
  createAgent({
    ...options(process),
    model,
    tools: [
      process.effect('pay'),
      ...agents.map((agent) => agentTool(agent, { description: agent.name })),
    ],
  });

export const worker = (process: Process, name = 'worker') =>
  below(process, name, [text('I look. '), pay('ann')], [text(`${name} is done.`)]);
