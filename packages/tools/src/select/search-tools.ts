import {
  addTools,
  cell,
  type Embedder,
  type Layer,
  type Message,
  MillraceError,
  tool,
  type Tool,
  toolOutput,
  type ToolSelector,
} from 'millrace';
import { type Call, layerPlaces } from 'millrace/call';
import { insertBefore, phase, type PhaseFactory, reasoning } from 'millrace/phases';
import { createMeaningIndex } from 'millrace/retrieval';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, isFunction, isRecord, isText, wholeNumber } from 'millrace/values';
import { defer, forkJoin, from, map, type Observable, type ObservableInput, of, take } from 'rxjs';
import { keywordSelector } from './keyword-selector.js';

/** Options of `searchTools`. */
export interface SearchToolsOptions {
  /** Maximum number of tools that a search loads. Default: 5. */
  readonly limit?: number | undefined;
  /** Names of tools that the model always sees. A name may belong to a tool that is added later, such as one of an MCP server. Default: none. */
  readonly pinned?: readonly string[] | undefined;
  /** If a request has no more tools than this, the model sees them all, and no search. Tools that come during the call count. Default: 20. */
  readonly above?: number | undefined;
  /** Searches by meaning, too. Default: by words only. */
  readonly embedder?: Embedder | undefined;
  /** Your own search instead: the names of tools, best first. */
  readonly select?: ToolSelector | undefined;
  /** The name of the tool that searches. Default: `search_tools`. */
  readonly name?: string | undefined;
}

/**
 * Shows the model a tool `search_tools` instead of hundreds of tools. A search loads the tools that it finds: the model sees them from its
 * next request on, until the end of the conversation.
 *
 * What is loaded is read from the conversation, so it is the same in a resumed call, in the next call of a session, and in another process. A
 * tool that the model calls by its right name without a search runs, too. Approvals, `selectTools` and limits work as they do without it.
 *
 * @example
 * ```ts
 * import { createAgent, tool } from 'millrace';
 * import { scriptedModel, text, toolCall } from 'millrace/testing';
 * import { searchTools } from '@millrace/tools';
 *
 * const weather = tool({ name: 'weather', description: 'The weather of a city.', run: () => 'Snow.' });
 * const others = Array.from({ length: 200 }, (_, n) =>
 *   tool({ name: `ledger_${n}`, description: `Reads ledger ${n}.`, run: () => '0' }),
 * );
 * const model = scriptedModel(
 *   [toolCall('search_tools', { query: 'weather forecast' })],
 *   [toolCall('weather')],
 *   [text('Snow.')],
 * );
 * const agent = createAgent({ model, tools: [weather, ...others], use: [searchTools()] });
 * await agent.call('Will it snow?');
 * for (const { tools = [] } of model.requests) console.log(tools.map(({ name }) => name).join());
 * ```
 *
 * ```text
 * search_tools
 * weather,search_tools
 * weather,search_tools
 * ```
 */
export const searchTools = (options: SearchToolsOptions = {}): Layer => {
  checkOptions('searchTools()', options, {
    limit: wholeNumber(1),
    pinned: [isNames, 'a list of names of tools'],
    above: wholeNumber(0),
    embedder: [(it) => isRecord(it) && typeof it['embed$'] === 'function', 'an Embedder'],
    select: isFunction,
    name: isText,
  });
  const { limit = 5, pinned = [], above = 20, embedder, name = 'search_tools' } = options;
  const select = options.select ?? defaultSelector(embedder);
  const loading: PhaseFactory = ({ local }) =>
    phase((run) => {
      local(loaded).names = namesLoaded(run.messages, name);
      return run;
    });
  return {
    ...insertBefore(reasoning, loading),
    name: 'searchTools',
    priority: layerPlaces.selectTools + 1,
    single: true,
    call: (context) => (next) => (call) => {
      const { toolChoice } = call.options.request ?? {};
      const forced = typeof toolChoice === 'object' ? [toolChoice.name] : [];
      const shown = new Set([...pinned, ...forced, 'manage_tools', 'read_result', name]);
      if (call.status !== 'prepared') return next(call);
      const { toolkit } = call;
      const searchable = (): readonly Tool[] =>
        toolkit.current.tools.filter((it) => !shown.has(it.name));
      const searching = addTools(searchTool(name, limit, select, searchable)).call?.(context);
      // Asked for each request: servers of MCP offer tools at any time.
      const shownOf = ({ names }: Toolkit): readonly string[] => {
        const others = names.filter((it) => it !== name);
        if (others.length <= above) return others;
        return names.filter((it) => shown.has(it) || context.local(loaded).names.has(it));
      };
      return (
        searching?.((added) => next({ ...added, toolkit: partOf(added.toolkit, shownOf) })) ?? next
      )(call);
    },
  };
};

/** The names of tools that the conversation has loaded or called so far. */
const loaded = cell('call', (): { names: ReadonlySet<string> } => ({ names: new Set() }));

const searchTool = (
  name: string,
  limit: number,
  select: ToolSelector,
  searchable: () => readonly Tool[],
): Tool =>
  tool({
    name,
    description:
      'Searches more tools, which you do not see yet, and loads those that fit: you can call them from your next step on. Search before you say that something cannot be done.',
    input: jsonSchema({
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 1_000,
          description: 'What the tool has to do, in a few words, such as "create an issue".',
        },
      },
      required: ['query'],
    }),
    idempotent: true,
    run: ({ query }) => {
      const tools = searchable();
      return namesIn(select, query, tools).pipe(
        map((found) => {
          const known = new Set(tools.map((it) => it.name));
          const names = [...new Set(found)].filter((it) => known.has(it)).slice(0, limit);
          return toolOutput({
            content:
              names.length === 0
                ? `No tool fits "${query}". Describe in other words what it has to do.`
                : `Loaded: ${names.join(', ')}. You can call them now.`,
            details: { loadedTools: names },
          });
        }),
      );
    },
  });

const namesIn = (
  select: ToolSelector,
  text: string,
  tools: readonly Tool[],
): Observable<readonly string[]> =>
  defer((): Observable<unknown> => {
    const found = select({ text, tools });
    return Array.isArray(found) ? of(found) : from<ObservableInput<unknown>>(found);
  }).pipe(
    take(1),
    map((found) => {
      if (isNames(found)) return found;
      throw new MillraceError(
        'config',
        `searchTools(): 'select' must return a list of names, such as ['search'].`,
      );
    }),
  );

/** By words, and with an embedder also by meaning. */
const defaultSelector = (embedder: Embedder | undefined): ToolSelector => {
  const byWords = keywordSelector({ threshold: 0 });
  if (embedder === undefined) return byWords;
  const index = createMeaningIndex(embedder, summaryOf, 0);
  return ({ text, tools }) =>
    forkJoin([
      namesIn(byWords, text, tools),
      index.rank$(text, tools).pipe(map((alike) => alike.map(({ name }) => name))),
    ]).pipe(map(([words, meaning]) => merged(words, meaning)));
};

/** The name, and the start of the description, which says most about the tool. */
const summaryOf = ({ name, description }: Tool): string => `${name}: ${description.slice(0, 200)}`;

/** Merges two rankings by their reciprocal ranks. Words are the surer half: names of products mean nothing to an embedder. */
const merged = (words: readonly string[], meaning: readonly string[]): readonly string[] => {
  const scores = new Map(words.map((name, rank) => [name, 1 / (1 + rank)]));
  meaning.forEach((name, rank) => scores.set(name, (scores.get(name) ?? 0) + 0.5 / (1 + rank)));
  return [...scores].sort(([, a], [, b]) => b - a).map(([name]) => name);
};

/** The tools that results of a search have loaded, and those that the model has called. */
const namesLoaded = (messages: readonly Message[], search: string): ReadonlySet<string> => {
  const names = new Set<string>();
  const searches = new Set<string>();
  for (const message of messages) {
    for (const block of message.content) {
      if (block.type === 'tool_call') {
        if (block.name === search) searches.add(block.id);
        else names.add(block.name);
      } else if (block.type === 'tool_result' && searches.has(block.toolCallId)) {
        loadedBy(block.details).forEach((name) => names.add(name));
      }
    }
  }
  return names;
};

const loadedBy = (details: unknown): readonly string[] => {
  const names = isRecord(details) ? details['loadedTools'] : undefined;
  return isNames(names) ? names : [];
};

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((it) => typeof it === 'string');

type ToolkitCell = Call['toolkit'];
type Toolkit = ToolkitCell['current'];

/** A view of a toolkit that declares some of its tools only. All can be called, and changes of either are in both. */
const partOf = (
  whole: ToolkitCell,
  shownOf: (current: Toolkit) => readonly string[],
): ToolkitCell => {
  const made: { of?: Toolkit; part?: Toolkit } = {};
  return {
    get current() {
      const { current } = whole;
      const names = shownOf(current);
      const declared = new Set(names);
      // Kept while it is the same: equal declarations are serialized once.
      if (made.of !== current || made.part?.names.join() !== names.join()) {
        made.of = current;
        made.part = {
          ...current,
          names,
          tools: current.tools.filter((it) => declared.has(it.name)),
          declarations: current.declarations.filter((it) => declared.has(it.name)),
          find: (name) => current.find(name),
        };
      }
      return made.part;
    },
    set current(changed) {
      whole.current = changed;
    },
  };
};
