import { createHash } from 'node:crypto';
import {
  type AgentEvent,
  type ApprovalRequest,
  type Approver,
  type ContentBlock,
  createAgent,
  isEvent,
  isMillraceError,
  MillraceError,
  type Model,
  type ModelChunk,
  sampleDeltas,
  textOf,
  type Tool,
  type ToolResultBlock,
  type Verdict,
} from 'millrace';
import { isRecord, messageOf, parsedJson } from 'millrace/values';
import {
  type CallToolResult,
  MissingRequiredClientCapabilityError,
} from '@modelcontextprotocol/server';
import { catchError, defer, EMPTY, mergeMap, type Observable, of, tap, throwError } from 'rxjs';
import { cleaned } from '../text.js';
import { blockOf, bounded } from './blocks.js';
import { type Asking, askingClient, clientEntry, missingCapabilityIn } from './mcp-client.js';
import type { Question } from './question.js';
import type { Serving } from './serve-options.js';

export interface Caller {
  /** Labels of the call: `session` and `user`, if known. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly client: Asking['client'];
}

export type Emission =
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'result'; readonly result: CallToolResult };

/** Progress that a client may show. */
export interface Progress {
  readonly progress?: number;
  readonly total?: number;
  readonly message?: string;
}

/**
 * Runs a tool for a client through the loop of an agent, which validates the input, asks for approval and applies
 * layers, retries and time-outs: the "model" of that agent is the client. Emits progress and one result. Errors only for clients
 * of version 2026-07-28, with the capability that the tool needs and the client has not declared.
 */
export const callTool$ = (
  serving: Serving,
  { tool, name }: { readonly tool: Tool; readonly name: string },
  input: Readonly<Record<string, unknown>>,
  { metadata, client }: Caller,
): Observable<Emission> =>
  defer(() => {
    const thrown: Thrown = {};
    const { use = [], context = [], limits, timeouts } = serving;
    const agent = createAgent({
      name: serving.name,
      model: oneCall(tool.name, input),
      tools: [watched(tool, thrown)],
      use,
      context: [...context, clientEntry(client)],
      limits: {
        maxIterations: 1,
        onLimit: 'partial',
        maxObservation: limits.result,
        timeouts: { toolMs: timeouts.toolMs },
      },
    });
    let hasResult = false;
    return agent.stream$(`Run ${tool.name}.`, { metadata }).pipe(
      sampleDeltas(progressGapMs),
      tap((event) => {
        if (isEvent(event, 'handlerError')) maskOf(serving, event.error);
      }),
      mergeMap((event): Observable<Emission> => {
        if (isEvent(event, 'postActing') && event.agent.length === 1) {
          hasResult = true;
          const { last } = thrown;
          return of(
            ended(
              last === undefined
                ? shown(serving, tool, event.result)
                : failed(serving, name, last.error),
            ),
          );
        }
        if (isEvent(event, 'postCall') && event.agent.length === 1 && !hasResult) {
          return of(ended(refused(`The tool '${name}' was not run.`)));
        }
        const progress = progressOf(event);
        return progress === undefined ? EMPTY : of({ type: 'progress', progress });
      }),
      catchError((error: unknown) =>
        error instanceof MissingRequiredClientCapabilityError
          ? throwError(() => error)
          : of(ended(failed(serving, name, error))),
      ),
    );
  });

const progressGapMs = 100;

const ended = (result: CallToolResult): Emission => ({ type: 'result', result });

export const refused = (text: string): CallToolResult => ({
  content: [{ type: 'text', text }],
  isError: true,
});

/** A model whose only message is this tool call. */
const oneCall = (name: string, input: Readonly<Record<string, unknown>>): Model => ({
  name: 'client',
  stream$: () =>
    of<ModelChunk[]>({ type: 'toolCall', name, input }, { type: 'finish', finish: 'stop' }),
});

// ---------------------------------------------------------------- errors

/** The error of the last attempt of a tool. The loop makes its message the result, but it may have secrets. */
interface Thrown {
  last?: { readonly error: unknown } | undefined;
}

const watched = (tool: Tool, thrown: Thrown): Tool => {
  const watch = <T>(start: () => Observable<T>): Observable<T> =>
    defer(() => {
      thrown.last = undefined;
      return start();
    }).pipe(
      tap({
        error: (error: unknown) => {
          thrown.last = { error };
        },
      }),
    );
  return {
    ...tool,
    validation$: (...given) => watch(() => tool.validation$(...given)),
    run$: (...given) => watch(() => tool.run$(...given)),
  };
};

const failed = (serving: Serving, name: string, error: unknown): CallToolResult => {
  const userMessage = `The tool '${name}' failed.`;
  const text = maskOf(serving, errorOf(error, 'tool', userMessage));
  const missing = missingCapabilityIn(error);
  if (missing !== undefined) throw missing;
  return refused(text);
};

/** Any thrown value as a typed error. */
export const errorOf = (
  cause: unknown,
  code: MillraceError['code'],
  userMessage?: string,
): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError(code, messageOf(cause), {
        cause,
        ...(userMessage !== undefined && { userMessage }),
      });

/** Reports an error, and returns the text of it for clients. */
export const maskOf = ({ onError }: Pick<Serving, 'onError'>, error: MillraceError): string => {
  try {
    const text = onError?.(error);
    if (typeof text === 'string') return cleaned(text, mostError);
    // An async callback cannot replace the text, and its rejection must not end the process.
    if (text instanceof Promise) text.catch(() => undefined);
  } catch {
    // The text for clients stays the default.
  }
  return cleaned(error.userMessage, mostError);
};

const mostError = 2_000;

// ---------------------------------------------------------------- results and progress

const shown = (
  { limits }: Serving,
  tool: Tool,
  { content, isError, suspended }: ToolResultBlock,
): CallToolResult => {
  if (suspended !== undefined) {
    return refused('The tool waits for an external result, which cannot be provided here.');
  }
  const result = { content: bounded(content, limits.result).map(blockOf), isError };
  return isError || !isStructured(tool) ? result : withStructure(result, content, limits.result);
};

/** Whether clients get its results as JSON objects of a schema. The protocol has no other schemas of results. */
export const isStructured = ({ outputSchema }: Tool): boolean =>
  outputSchema?.['type'] === 'object';

/** Of a tool with a schema, a client takes no other result: one with content of its own, or one that is too long, is an error. */
const withStructure = (
  result: CallToolResult,
  content: readonly ContentBlock[],
  maxLength: number,
): CallToolResult => {
  const text = textOf({ content });
  if (text.length > maxLength) {
    return refused(`The result has ${text.length} characters, the limit is ${maxLength}.`);
  }
  const value = parsedJson(text);
  return isRecord(value)
    ? { ...result, structuredContent: value }
    : refused('The tool returned no structured content.');
};

/** Progress of the tool, and of the agent that a tool asks. Deeper agents are not shown. */
const progressOf = (event: AgentEvent): Progress | undefined => {
  if (event.agent.length > 2) return undefined;
  if (isEvent(event, 'actingChunk')) return ofValue(event.value);
  if (event.agent.length !== 2) return undefined;
  if (isEvent(event, 'reasoningChunk', 'summaryChunk')) {
    return event.kind === 'text' ? { message: cleaned(event.delta, mostMessage) } : undefined;
  }
  if (isEvent(event, 'preActing')) return { message: `Calling ${event.toolCall.name}.` };
  return undefined;
};

const mostMessage = 1_000;

const ofValue = (value: unknown): Progress => {
  if (!isRecord(value)) return { message: cleaned(textOfValue(value), mostMessage) };
  const { progress, total, message } = value;
  if (typeof progress !== 'number' && typeof message !== 'string') {
    return { message: cleaned(textOfValue(value), mostMessage) };
  }
  return {
    ...(typeof progress === 'number' && Number.isFinite(progress) && { progress }),
    ...(typeof total === 'number' && Number.isFinite(total) && { total }),
    ...(typeof message === 'string' && { message: cleaned(message, mostMessage) }),
  };
};

const textOfValue = (value: unknown): string => {
  if (typeof value === 'string') return value;
  try {
    // It returns undefined for functions and symbols, despite its type.
    const json: unknown = JSON.stringify(value);
    return typeof json === 'string' ? json : '';
  } catch {
    return '';
  }
};

// ---------------------------------------------------------------- approval

/**
 * An approver that asks the user of the MCP client, with a form that shows the input, or the diff of a file tool. A client that
 * cannot ask (it does not support elicitation) denies the call. For tools that run in `serveMcp` or `mcpHandler`.
 */
export const approveByClient: Approver = (request) => {
  const client = askingClient(request.context);
  if (!client.supports.forms) return denied('The client cannot ask the user.');
  return client
    .ask$(approvalOf(request))
    .pipe(
      catchError((error: unknown) =>
        of(
          denied(
            isMillraceError(error) && error.code === 'refused'
              ? error.userMessage
              : 'The client did not ask the user.',
          ),
        ),
      ),
    );
};

const denied = (reason: string): Verdict => ({ approved: false, reason });

/** The answer comes from the client: anything but an acceptance is a denial. */
const approvalOf = (request: ApprovalRequest): Question<Verdict> => ({
  id: idOf(request),
  feature: 'forms',
  request: {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: `Run ${request.tool}?\n\n${previewOf(request)}`,
      requestedSchema: {
        type: 'object',
        properties: { approve: { type: 'boolean', title: 'Approve', default: false } },
        required: ['approve'],
      },
    },
  },
  read$: (answer) => of(verdictOf(isRecord(answer) ? answer : {})),
});

const verdictOf = ({ action, content }: Readonly<Record<string, unknown>>): Verdict => {
  if (action === 'cancel') return denied('The user did not decide.');
  const isApproved = action === 'accept' && isRecord(content) && content['approve'] === true;
  return isApproved ? true : denied('The user denied it.');
};

const idOf = ({ tool, input }: ApprovalRequest): string =>
  `approve-${createHash('sha256')
    .update(JSON.stringify([tool, input]))
    .digest('hex')
    .slice(0, 32)}`;

const previewOf = (request: ApprovalRequest): string => {
  const diff: unknown = 'diff' in request ? request.diff : undefined;
  const text = typeof diff === 'string' ? diff : JSON.stringify(request.input, undefined, 2);
  const hidden = text.length - mostPreview;
  return hidden > 0
    ? `${cleaned(text, mostPreview)}\n[${hidden} more characters are not shown.]`
    : cleaned(text, mostPreview);
};

const mostPreview = 4_000;
