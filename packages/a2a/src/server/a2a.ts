import { AGENT_CARD_PATH, type AgentCard } from '@a2a-js/sdk';
import type { Agent } from 'millrace';
import { checkOptions, defined, isFlag, isRecord, isText, type Rule } from 'millrace/values';
import type { ChatProtocol, Visit } from '@millrace/server/chat';
import { concatMap, of } from 'rxjs';
import { answered$ } from './rpc.js';
import { createTasks } from './tasks.js';

/** Something that an agent can do, for its card. */
export interface A2aSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** Default: none. */
  readonly tags?: readonly string[];
  /** Questions that show its use. Default: none. */
  readonly examples?: readonly string[];
}

/** Options of `a2a`. */
export interface A2aOptions {
  /** The path for requests. Default: `/api/a2a`. */
  readonly path?: string | undefined;
  /** The URL for requests, for the card. Default: the `path` on the host that the card is asked of, which a proxy may name in `x-forwarded-host` and `x-forwarded-proto`. */
  readonly url?: string | undefined;
  /** The purpose of the agent, for the card. Default: its name. */
  readonly description?: string | undefined;
  /** The version of the agent, for the card. Default: `1.0.0`. */
  readonly version?: string | undefined;
  /** The abilities of the agent, for the card. Default: one skill, to answer. */
  readonly skills?: readonly A2aSkill[] | undefined;
  /** How clients authenticate, for the card. Default: it does not say. */
  readonly security?: Pick<AgentCard, 'securitySchemes' | 'securityRequirements'> | undefined;
  /** Sends which tools run and their progress, as metadata of status updates. Default: false. */
  readonly progress?: boolean | undefined;
}

/**
 * Serves clients of A2A 1.0 and 0.3 over JSON-RPC: `chatServer(agent, { protocols: [a2a()] })`. The card is at
 * `/.well-known/agent-card.json`. A context is a conversation. A task is a call and the calls that resume it; it is
 * found as long as the server keeps its calls.
 */
export const a2a = (options: A2aOptions = {}): ChatProtocol => {
  checkOptions('a2a()', options, rules);
  const given = defined(options);
  const { path = '/api/a2a', progress = false } = given;
  return ({ agent, approvals }) => {
    const cardFor = ({ request, mount }: Pick<Visit, 'request' | 'mount'>): AgentCard =>
      cardOf(agent, given, given.url ?? urlAt(request, `${mount}${path}`));
    return [
      {
        method: 'GET',
        path: `/${AGENT_CARD_PATH}`,
        isPublic: true,
        answer$: (visit) => of(cardResponse(cardFor(visit))),
      },
      {
        method: 'POST',
        path,
        answer$: (visit) => {
          const tasks = createTasks(visit, { approvals, progress });
          return visit.body$.pipe(
            concatMap((body) => answered$(visit, body, tasks, cardFor(visit))),
          );
        },
      },
    ];
  };
};

/** The URL of a path on the host that the client requested, which a proxy or a framework may have replaced. */
const urlAt = ({ url: asked, headers }: Request, path: string): string => {
  const { protocol, host } = new URL(asked);
  const firstOf = (name: string): string | undefined => headers.get(name)?.split(',')[0]?.trim();
  const scheme = firstOf('x-forwarded-proto') ?? protocol.slice(0, -1);
  const name = firstOf('x-forwarded-host') ?? headers.get('host') ?? host;
  const isNamed = /^https?$/u.test(scheme) && /^[\w.:[\]-]+$/u.test(name);
  const named = `${scheme}://${name}`;
  return new URL(path, isNamed && URL.canParse(named) ? named : asked).href;
};

const isSkill = (skill: unknown): boolean =>
  isRecord(skill) &&
  ['id', 'name', 'description'].every((key) => typeof skill[key] === 'string') &&
  ['tags', 'examples'].every((key) => skill[key] === undefined || Array.isArray(skill[key]));

const rules: Readonly<Record<keyof A2aOptions, Rule>> = {
  path: [
    (value) => typeof value === 'string' && /^(?:\/[\w.~-]+)+$/u.test(value),
    "a path, such as '/a2a'",
  ],
  url: [(value) => typeof value === 'string' && URL.canParse(value), 'a URL'],
  description: isText,
  version: isText,
  skills: [
    (value) => Array.isArray(value) && value.every(isSkill),
    'a list of skills: { id, name, description }',
  ],
  security: [
    (value) =>
      isRecord(value) &&
      isRecord(value['securitySchemes']) &&
      Array.isArray(value['securityRequirements']),
    "an object with 'securitySchemes' and 'securityRequirements'",
  ],
  progress: isFlag,
};

// ---------------------------------------------------------------- the card

const cardOf = (
  { name }: Agent,
  { description, version = '1.0.0', skills, security }: A2aOptions,
  url: string,
): AgentCard => {
  const about = description ?? name;
  const listed = skills ?? [{ id: 'answer', name, description: about }];
  const interfaces = ['1.0', '0.3'].map((protocolVersion) => ({
    ...{ url, protocolVersion, protocolBinding: 'JSONRPC', tenant: '' },
  }));
  return {
    ...{ name, version, description: about, supportedInterfaces: interfaces },
    provider: undefined,
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [],
    },
    securitySchemes: security?.securitySchemes ?? {},
    securityRequirements: security?.securityRequirements ?? [],
    defaultInputModes: ['text/plain', 'application/json', 'image/*', 'audio/*', 'application/pdf'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: listed.map(({ tags = [], examples = [], ...skill }) => ({
      ...skill,
      tags: [...tags],
      examples: [...examples],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    })),
    signatures: [],
  };
};

/** Combines the cards of both versions: 0.3 and 1.0 use different fields. */
const cardResponse = (card: AgentCard): Response => {
  const [{ url } = { url: '' }] = card.supportedInterfaces;
  const legacy = { url, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0' };
  return Response.json({ ...card, ...legacy }, { headers: { 'cache-control': 'no-cache' } });
};
