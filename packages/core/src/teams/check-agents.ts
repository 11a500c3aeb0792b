import { misuse } from '../errors.js';
import { isRecord } from '../json.js';

/** Refuses what is no list of agents, and names that do not tell them apart. */
export const checkAgents = (owner: string, agents: readonly unknown[], least: number): void => {
  if (agents.length < least) throw misuse(`${owner} needs at least ${least} of 'agents'.`);
  const wrong = agents.findIndex((agent) => nameOf(agent) === undefined);
  if (wrong !== -1) {
    throw misuse(
      `${owner}: what stands at place ${wrong + 1} of 'agents' is none. Give other steps and sessions a name: asAgent(step, { name: 'writer' }).`,
    );
  }
};

/** Refuses names that do not tell apart who speaks. */
export const checkNames = (owner: string, speakers: readonly unknown[]): void => {
  const names = speakers.map(nameOf);
  const twice = names.find((name, index) => name !== undefined && names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw misuse(
    `${owner}: more than one agent is called '${twice}'. Give each a 'name' of its own, so that they know who says what.`,
  );
};

const nameOf = (agent: unknown): string | undefined =>
  isRecord(agent) && typeof agent['call$'] === 'function' && typeof agent['name'] === 'string'
    ? agent['name']
    : undefined;
