import { MillraceError } from 'millrace';
import {
  type CompleteResult,
  isInputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import { from, map, mergeMap, type Observable, of } from 'rxjs';
import type { McpCompletion, McpCompletionRequest } from './completion.js';
import { given$ } from './lists.js';
import type { McpRequest } from './mcp-client.js';
import type { McpPrompt } from './prompts.js';
import { answered, type Connection } from './requests.js';
import { isTemplate, type McpResource, type McpResourceTemplate } from './resources.js';

export const handleCompletion = (connection: Connection): void => {
  const { mcp, prompts, resources } = connection;
  mcp.server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const result = await answered(connection, context, params, (request, end$) =>
      from(Promise.all([prompts?.current(end$) ?? [], resources?.current(end$) ?? []])).pipe(
        mergeMap(([allPrompts, allResources]) =>
          completed$(params, allPrompts, allResources, request),
        ),
      ),
    );
    // Completions get no client to ask.
    return isInputRequiredResult(result) ? { completion: { values: [] } } : result;
  });
};

/** A request of a client to complete an argument. */
export interface CompletionRequest {
  readonly ref:
    | { readonly type: 'ref/prompt'; readonly name: string }
    | { readonly type: 'ref/resource'; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  readonly context?:
    { readonly arguments?: Readonly<Record<string, string>> | undefined } | undefined;
}

/** Emits the suggestions; none for an argument without a completion. Throws for clients if there is no such prompt or template. */
export const completed$ = (
  { ref, argument, context }: CompletionRequest,
  prompts: readonly McpPrompt[],
  resources: readonly (McpResource | McpResourceTemplate)[],
  { metadata, signal }: McpRequest,
): Observable<CompleteResult> => {
  const { name, value } = argument;
  const completion =
    ref.type === 'ref/prompt'
      ? promptOf(prompts, ref.name).arguments?.find((it) => it.name === name)?.complete
      : completionOf(templateOf(resources, ref.uri), name);
  return suggested$(completion, value, {
    metadata,
    signal,
    arguments: context?.arguments ?? {},
  }).pipe(
    map((all) => {
      if (!Array.isArray(all)) throw misshapen();
      const fit = all.filter((it) => typeof it === 'string' && it.length <= longestValue);
      const values = fit.slice(0, mostValues);
      return { completion: { values, total: fit.length, hasMore: fit.length > values.length } };
    }),
  );
};

/** The protocol allows no more. */
const mostValues = 100;
const longestValue = 1_000;

const suggested$ = (
  completion: McpCompletion | undefined,
  value: string,
  request: McpCompletionRequest,
): Observable<readonly string[]> => {
  if (completion === undefined) return of([]);
  if (typeof completion === 'function') return given$(() => completion(value, request), misshapen);
  const start = value.toLowerCase();
  return of(completion.filter((it) => it.toLowerCase().startsWith(start)));
};

const promptOf = (prompts: readonly McpPrompt[], name: string): McpPrompt =>
  prompts.find((it) => it.name === name) ?? unknown(`There is no prompt '${name.slice(0, 128)}'.`);

const templateOf = (
  resources: readonly (McpResource | McpResourceTemplate)[],
  uri: string,
): McpResource | McpResourceTemplate =>
  resources.find((it) => (isTemplate(it) ? it.uriTemplate : it.uri) === uri) ??
  unknown(`There is no resource template '${uri.slice(0, 128)}'.`);

const completionOf = (
  resource: McpResource | McpResourceTemplate,
  name: string,
): McpCompletion | undefined => {
  const complete = isTemplate(resource) ? (resource.complete ?? {}) : {};
  return Object.hasOwn(complete, name) ? complete[name] : undefined;
};

const unknown = (text: string): never => {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, text);
};

const misshapen = (): MillraceError =>
  new MillraceError('invalidResponse', "'complete' must return or emit a list of strings.");
