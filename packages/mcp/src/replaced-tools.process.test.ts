import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type Tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { filter, firstValueFrom, map, type Observable, ReplaySubject } from 'rxjs';
import { mcp, type McpLayer, type McpServer, mcpTools } from './index.js';
import { hostile, ran } from './servers.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const held = (server: McpServer): McpLayer => {
  const servers = mcp(server);
  open.push(servers.servers$.subscribe());
  return servers;
};

const namesIn = (servers: McpLayer): Promise<readonly string[]> =>
  firstValueFrom(
    servers.servers$.pipe(
      filter(([server]) => server?.status === 'connected'),
      map(([server]) => server?.tools.map(({ name }) => name) ?? []),
    ),
  );

describe('T20: two tools of a server with one name for models', () => {
  it('are the first one, in every later list', async () => {
    const servers = held(hostile('swaps names'));
    const { results } = await ran([servers], [['bad_use']], [['bad_pay_it']]);
    expect(results['bad_pay_it']).toBe('pay.it ran');
    const later = await ran([servers], [['bad_use']], [['bad_pay_it']]);
    expect(await namesIn(servers)).toEqual(['bad_use']);
    expect(later.results['bad_pay_it']).toMatch(/No tool is named 'bad_pay_it'/u);
    expect(later.warnings.join()).toContain(
      "'bad_pay_it' of the MCP server 'bad' is left out: the name is taken. Choose the tool you need with 'include' or 'exclude', and restart.",
    );
  });

  it('are that of Millrace, if it is one of those for resources', async () => {
    const servers = held(hostile('takes a name', { resources: true }));
    await ran([servers], [['bad_use']]);
    const { descriptions, warnings } = await ran([servers]);
    expect(descriptions['bad_read_resource']).toBe('Reads a resource of bad by its URI.');
    expect(warnings.join()).toContain("'bad_read_resource' of the MCP server 'bad' is left out");
  });
});

/** All lists of a server. */
const listsOf = (server: McpServer): Observable<readonly Tool[]> => {
  const list$ = new ReplaySubject<readonly Tool[]>(Infinity);
  open.push(mcpTools(server).subscribe(list$));
  return list$;
};

const played = async (tools: readonly Tool[], ...names: readonly string[]) => {
  const model = scriptedModel(...names.map((name) => [toolCall(name)]), [text('Done.')]);
  const { toolCalls } = await createAgent({ model, tools }).call('?');
  return toolCalls.map(({ output }) => output);
};

const notRun = (name: string): string =>
  `Not run: the server has changed the tool '${name}'. Call it again if you still have it.`;

describe('T20: a tool of an earlier list', () => {
  it('does not run once the server lists another one of its name', async () => {
    const tools = await firstValueFrom(listsOf(hostile('redescribed')));
    expect(await played(tools, 'bad_prey', 'bad_use', 'bad_prey')).toEqual([
      'prey ran',
      'use ran',
      notRun('prey'),
    ]);
  });

  it('does not run in another process of the server that lists another one', async () => {
    const servers = held(hostile('reborn', { reconnect: { attempts: 5, backoffMs: 1 } }));
    const toolsBut = (known: readonly Tool[]) =>
      firstValueFrom(
        servers.servers$.pipe(
          filter(([server]) => server?.status === 'connected' && server.tools !== known),
          map(([server]) => server?.tools ?? []),
        ),
      );
    const tools = await toolsBut([]);
    expect((await played(tools, 'bad_use', 'bad_end'))[0]).toBe('use ran');
    await toolsBut(tools);
    expect(await played(tools, 'bad_use')).toEqual([notRun('use')]);
  });

  it('is the same one in a later list if it has not changed, so that a call of it can wait', async () => {
    const servers = held(hostile('renamed'));
    await ran([servers], [['bad_use']]);
    const first = await firstValueFrom(servers.servers$);
    await ran([servers], [['bad_use']]);
    const second = await firstValueFrom(servers.servers$);
    const useIn = ([server]: typeof first) => server?.tools.find(({ name }) => name === 'bad_use');
    expect(useIn(second)).toBe(useIn(first));
    expect(second).not.toBe(first);
  });
});
