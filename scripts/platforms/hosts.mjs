// Web servers that a chat server is embedded in. Each starts with the server's listener, and resolves to its URL and what closes it.
import { once } from 'node:events';
import { createServer, request as requestOf } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mkdtempSync, rmSync } from 'node:fs';
import { toNodeListener } from '@millrace/server/node';
import { root } from '../workspaces.mjs';

const { resolve } = createRequire(join(root, 'examples/platforms/package.json'));
const load = async (specifier) => {
  const module = await import(pathToFileURL(resolve(specifier)));
  return module.default ?? module;
};

/** The answer of a program to what the chat server has no route for. */
export const other = 'other route';

const listening = async (server, path = '') => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}${path}`, close };
};

const express =
  (version, middlewares = [], mount = '/') =>
  async (chat) => {
    const create = await load(version);
    const app = create();
    for (const middleware of middlewares) app.use(await middleware(create));
    app.use(mount, toNodeListener(chat));
    app.use((_request, response) => response.status(404).send(other));
    return listening(createServer(app), mount === '/' ? '' : mount);
  };

const json = (create) => create.json({ limit: '4mb' });
const urlencoded = (create) => create.urlencoded({ extended: true });
const middleware = (name, options) => async () => (await load(name))(options);

const fastify =
  (prefix = '') =>
  async (chat) => {
    const app = (await load('fastify'))({ bodyLimit: 4_000_000, forceCloseConnections: true });
    app.addHook('onRequest', async (_request, reply) => void reply.header('x-own', '1'));
    app.setNotFoundHandler((_request, reply) => reply.code(404).send(other));
    const routes = async (scope) => {
      const listener = toNodeListener(chat);
      scope.all('/', listener);
      scope.all('/*', listener);
    };
    await app.register(routes, { prefix });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return { url: `${url}${prefix}`, close: () => app.close() };
  };

const nest = (platform, Adapter) => async (chat) => {
  await import(pathToFileURL(resolve('reflect-metadata')));
  const { Module, Controller, Get } = await import(pathToFileURL(resolve('@nestjs/common')));
  const { NestFactory } = await import(pathToFileURL(resolve('@nestjs/core')));
  const adapter = await import(pathToFileURL(resolve(platform)));
  class Own {}
  Own.prototype.read = () => other;
  Get('other')(Own.prototype, 'read', Object.getOwnPropertyDescriptor(Own.prototype, 'read'));
  Controller()(Own);
  class App {}
  Module({ controllers: [Own] })(App);
  const app = await NestFactory.create(App, new adapter[Adapter](), {
    logger: ['error'],
    forceCloseConnections: true,
  });
  app.use(toNodeListener(chat));
  await app.listen(0, '127.0.0.1');
  return {
    url: `http://127.0.0.1:${app.getHttpServer().address().port}`,
    close: () => app.close(),
  };
};

const hono = async (chat) => {
  const { Hono } = await import('hono');
  const { getRequestListener } = await import('@hono/node-server');
  const app = new Hono();
  app.use(({ req }, next) => (chat.handles(req.raw) ? chat.respond(req.raw) : next()));
  app.all('*', (context) => context.text(other, 404));
  return listening(createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })));
};

const koa = async (chat) => {
  const app = new (await load('koa'))();
  const listener = toNodeListener(chat);
  app.use(
    (context, next) =>
      new Promise((done, failed) => {
        context.respond = false;
        context.res.once('close', done);
        listener(context.req, context.res, (error) => {
          context.respond = true;
          if (error === undefined) next().then(done, failed);
          else failed(error);
        });
      }),
  );
  app.use((context) => {
    context.status = 404;
    context.body = other;
  });
  return listening(createServer(app.callback()));
};

/** Next.js calls a route handler with its own kind of request. */
const next = async (chat) => {
  const { NextRequest } = await import(pathToFileURL(resolve('next/server.js')));
  const respond = (request) => {
    const { method, headers, body, signal } = request;
    const asked = new NextRequest(request.url, { method, headers, body, signal, duplex: 'half' });
    return chat.handles(asked)
      ? chat.respond(asked)
      : new globalThis.Response(other, { status: 404 });
  };
  return listening(createServer(toNodeListener({ respond })));
};

/** Forwards to a server, as many proxies do: under the name of that server, and without a prefix of the path. */
const stripping = (isNamed) => async (chat) => {
  const inner = await listening(
    createServer((request, response) =>
      toNodeListener(chat)(request, response, () => response.writeHead(404).end(other)),
    ),
  );
  const proxy = createServer((request, response) => {
    if (request.url === '/ai' && !isNamed) {
      response.writeHead(301, { location: '/ai/' }).end();
      return;
    }
    const path = request.url.replace(/^\/ai/u, '') || '/';
    const { host } = new URL(inner.url);
    const headers = { ...request.headers, host, ...(isNamed && { 'x-forwarded-prefix': '/ai' }) };
    const forwarded = requestOf(`${inner.url}${path}`, { method: request.method, headers });
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    forwarded.on('error', () => response.headersSent || response.destroy());
    response.on('close', () => forwarded.destroy());
    request.pipe(forwarded);
  });
  const outer = await listening(proxy, '/ai');
  return {
    url: outer.url,
    isProxy: true,
    close: () => {
      outer.close();
      inner.close();
    },
  };
};

const vite = async (chat) => {
  const inner = await listening(
    createServer((request, response) =>
      toNodeListener(chat)(request, response, () => response.writeHead(404).end(other)),
    ),
  );
  const { createServer: createVite } = await import(pathToFileURL(resolve('vite')));
  const folder = mkdtempSync(join(tmpdir(), 'vite-'));
  const server = await createVite({
    configFile: false,
    root: folder,
    logLevel: 'silent',
    appType: 'custom',
    // The short form, which names the target as the host.
    server: { port: 0, host: '127.0.0.1', proxy: { '/': inner.url } },
  });
  await server.listen();
  return {
    url: `http://127.0.0.1:${server.httpServer.address().port}`,
    isProxy: true,
    close: async () => {
      await server.close();
      inner.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The hosts by name. */
export const hosts = {
  'Express 5': express('express'),
  'Express 5 after json()': express('express', [json, urlencoded]),
  'Express 5 after compression(), cors(), helmet() and json()': express('express', [
    middleware('compression', { threshold: 0 }),
    middleware('cors'),
    middleware('helmet'),
    json,
  ]),
  'Express 5 at /ai': express('express', [json], '/ai'),
  'Express 4': express('express4'),
  'Express 4 after json()': express('express4', [json, urlencoded]),
  'Express 4 at /ai': express('express4', [json], '/ai'),
  Fastify: fastify(),
  'Fastify at /ai': fastify('/ai'),
  'NestJS on Express': nest('@nestjs/platform-express', 'ExpressAdapter'),
  'NestJS on Fastify': nest('@nestjs/platform-fastify', 'FastifyAdapter'),
  Hono: hono,
  Koa: koa,
  'Next.js, a route handler': next,
  'Vite, a proxy in the short form': vite,
  'a proxy that removes /ai': stripping(false),
  'a proxy that removes and names /ai': stripping(true),
};
