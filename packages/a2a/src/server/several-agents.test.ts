import { describe, expect, it } from '@jest/globals';
import { ClientFactory } from '@a2a-js/sdk/client';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { chatServer, mountServers } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { saying, shortOf, taskIn } from './clients.test-support.js';
import { a2a } from './index.js';

describe('X43: several agents over A2A', () => {
  it('have a card below the path of each, which leads to it', async () => {
    const serverOf = (name: string) =>
      chatServer(createAgent({ name, model: scriptedModel([text(`I am ${name}.`)]) }), {
        protocols: [a2a()],
      });
    const servers = { '/sales': serverOf('sales'), '/support': serverOf('support') };
    const http = createServer(toNodeListener(mountServers(servers))).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const address = http.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    try {
      for (const name of ['sales', 'support']) {
        const url = `http://127.0.0.1:${port}/${name}/`;
        const client = await new ClientFactory().createFromUrl(url);
        const { answer } = shortOf(taskIn(await client.sendMessage(saying('Who are you?'))));
        expect(answer).toBe(`I am ${name}.`);
      }
    } finally {
      http.close();
      http.closeAllConnections();
    }
  });
});
