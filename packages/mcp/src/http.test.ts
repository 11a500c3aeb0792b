import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, toolCall } from 'millrace/testing';
import { firstValueFrom, Subject, takeUntil } from 'rxjs';
import { mcp, mcpTools } from './index.js';
import { calm, ran } from './servers.test-support.js';
import { type Answer, at, closeLatest, listening, send, web } from './web.test-support.js';

describe('T20: a server over HTTP', () => {
  it('gets the headers with each request, and a notification when the session ends', async () => {
    const seen: string[] = [];
    const deleted = new Promise<unknown>((resolve) => {
      void web({
        DELETE: (_message, request, response) => {
          send(response, 200);
          resolve(request.headers['mcp-session-id']);
        },
        'tools/call': (message, request, response) => {
          seen.push(String(request.headers['x-key']));
          const result = { content: [{ type: 'text', text: 'use ran' }] };
          send(response, 200, { jsonrpc: '2.0', id: message['id'], result });
        },
      }).then(async (url) => {
        const { results: texts } = await ran(
          [mcp(at(url, { headers: { 'X-Key': 'secret' } }))],
          [['web_use']],
        );
        expect(texts['web_use']).toBe('use ran');
      });
    });
    expect(await deleted).toBe('one');
    expect(seen).toEqual(['secret']);
  });

  it.each<[number, string, RegExp]>([
    [401, 'auth', /HTTP 401|authorization/],
    [403, 'auth', /HTTP 403/],
    [429, 'rateLimited', /HTTP 429/],
    [503, 'server', /HTTP 503/],
  ])('that answers with %d fails with %s, without its headers', async (status, code, message) => {
    const url = await web({
      initialize: (_message, request, response) => send(response, status, request.headers),
      'server/discover': (_message, request, response) => send(response, status, request.headers),
    });
    const headers = { Authorization: 'Bearer very-secret-token' };
    const failure: unknown = await firstValueFrom(mcpTools(at(url, { headers }))).catch(
      (cause: unknown) => cause,
    );
    expect(failure).toMatchObject({
      name: 'MillraceError',
      code,
      message: expect.stringMatching(message),
    });
    expect(JSON.stringify(failure) + String(failure)).not.toContain('very-secret-token');
  });

  it('that cannot be reached is a warning, and another server works', async () => {
    const url = await web();
    await closeLatest();
    const { results: texts, warnings } = await ran([mcp(at(url), calm())], [['calm_use']]);
    expect(texts['calm_use']).toBe('use ran');
    expect(warnings).toEqual([
      expect.stringMatching(/'web' failed to connect: it cannot be reached/),
    ]);
  });

  it('X6: that sends a message without end is cut off', async () => {
    const url = await web({
      'tools/call': (_message, _request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('"');
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(10_000)));
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      },
    });
    const server = { ...at(url), limits: { message: 100_000 } };
    const { results: texts, warnings } = await ran([mcp(server)], [['web_use']]);
    expect(texts['web_use']).toContain("The MCP server 'web' failed to run 'use'");
    expect(warnings.join()).toContain('more than 100000 bytes');
  });

  it.each(['server/discover', 'tools/list', 'tools/call'])(
    'that never answers to %s is left with the call',
    async (method) => {
      const left = new Promise<void>((resolve) => {
        void web({
          [method]: (_message, _request, response) => {
            response.on('close', resolve);
            asked$.next();
          },
        }).then((url) => {
          const model = scriptedModel([toolCall('web_use')]);
          const patient = { ...at(url), timeouts: { connectMs: 2_000_000_000 } };
          createAgent({ model, use: [mcp(patient)] })
            .stream$('?')
            .pipe(takeUntil(asked$))
            .subscribe();
        });
      });
      const asked$ = new Subject<void>();
      await left;
    },
  );

  it('X9: that redirects to another origin does not get the headers there', async () => {
    const stolen: unknown[] = [];
    const thief = await listening((_message, request, response) => {
      stolen.push(request.headers['x-key']);
      send(response, 500);
    });
    const redirects: Answer = (_message, _request, response) => {
      response.writeHead(307, { location: thief });
      response.end();
    };
    const url = await web({ initialize: redirects, 'server/discover': redirects });
    const failure = firstValueFrom(mcpTools(at(url, { headers: { 'X-Key': 'secret' } })));
    await expect(failure).rejects.toMatchObject({ name: 'MillraceError' });
    expect(stolen.filter((key) => key !== undefined)).toEqual([]);
  });
});
