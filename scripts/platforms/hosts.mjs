// Web servers that a chat server is embedded in. Each starts with the server's listener, and resolves to its URL and what closes it.
import { once } from 'node:events';
import { createServer, request as requestOf } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { toNodeListener } from '@millrace/server/node';
import { root } from '../workspaces.mjs';

const { resolve } = createRequire(join(root, 'examples/platforms/package.json'));
const load = async (specifier) => {
  const module = await import(pathToFileURL(resolve(specifier)));
  return module.default ?? module;
};

/** The answer of a program to what the chat server has no route for. */
export const other = 'other route';

/** Starts a server, with sockets of the chat server if it is given. */
const listening = async (server, path = '', chat = undefined) => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  chat?.attach(server, path);
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const url = `http://127.0.0.1:${server.address().port}${path}`;
  return { url, close, hasSockets: chat !== undefined };
};

const express =
  (version, middlewares = [], mount = '/') =>
  async (chat) => {
    const create = await load(version);
    const app = create();
    for (const middleware of middlewares) app.use(await middleware(create));
    app.use(mount, toNodeListener(chat));
    app.use((_request, response) => response.status(404).send(other));
    return listening(createServer(app), mount === '/' ? '' : mount, chat);
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
    chat.attach(app.server, prefix);
    return { url: `${url}${prefix}`, close: () => app.close(), hasSockets: true };
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
  chat.attach(app.getHttpServer());
  return {
    url: `http://127.0.0.1:${app.getHttpServer().address().port}`,
    close: () => app.close(),
    hasSockets: true,
  };
};

const hono = async (chat) => {
  const { Hono } = await import('hono');
  const { getRequestListener } = await import('@hono/node-server');
  const app = new Hono();
  app.use(({ req }, next) => (chat.handles(req.raw) ? chat.respond(req.raw) : next()));
  app.all('*', (context) => context.text(other, 404));
  // It replaces these, as most programs let it.
  const { Request, Response } = globalThis;
  const started = await listening(createServer(getRequestListener(app.fetch)), '', chat);
  return {
    ...started,
    close: () => {
      started.close();
      Object.assign(globalThis, { Request, Response });
    },
  };
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
  return listening(createServer(app.callback()), '', chat);
};

/**
 * Next.js with these files, in an own folder below those of the package, where it finds itself. Its routes run in this process, and get the chat
 * server as a global. A process has one of these: Next.js registers its workers once, and writes to its folder until the process ends, which is
 * when the folder goes.
 */
const next = (files, path) => async (chat) => {
  process.env.NEXT_TELEMETRY_DISABLED = '1';
  const create = await load('next');
  const parent = join(root, 'examples/platforms/temp');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'next-'));
  const settings = { turbopack: { root }, devIndicators: false };
  const all = {
    'package.json': JSON.stringify({ name: 'next-host', private: true, type: 'module' }),
    'next.config.js': `export default ${JSON.stringify(settings)};`,
    ...files,
  };
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  globalThis.embedded = { chat, listener: toNodeListener(chat), other };
  const app = create({ dev: true, dir: folder, quiet: true });
  await app.prepare();
  const handle = app.getRequestHandler();
  const started = await listening(
    createServer((request, response) => handle(request, response)),
    path,
    path === '' ? chat : undefined,
  );
  return {
    ...started,
    close: async () => {
      started.close();
      await app.close();
    },
  };
};

const appRouter = {
  'app/[[...path]]/route.js': `
const GET = (request) => globalThis.embedded.chat.respond(request);
export { GET, GET as POST, GET as PATCH, GET as DELETE, GET as OPTIONS };
`,
  'app/other/route.js': `
export const GET = () => new Response(globalThis.embedded.other, { status: 404 });
`,
};

const pagesRouter = {
  'pages/index.js': `export default () => null;`,
  'pages/api/ai/[[...path]].js': `
export const config = { api: { bodyParser: { sizeLimit: '4mb' }, externalResolver: true } };
export default (request, response) => {
  const { listener, other } = globalThis.embedded;
  request.originalUrl = request.url;
  request.url = request.url.slice('/api/ai'.length) || '/';
  listener(request, response, () => response.status(404).send(other));
};
`,
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
    const named = { 'x-forwarded-prefix': '/ai', 'x-forwarded-host': request.headers.host };
    const headers = { ...request.headers, host, ...(isNamed && named) };
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
    close: () => {
      outer.close();
      inner.close();
    },
  };
};

const vite = (options) => async (chat) => {
  const inner = await listening(
    createServer((request, response) =>
      toNodeListener(chat)(request, response, () => response.writeHead(404).end(other)),
    ),
    '',
    chat,
  );
  const { createServer: createVite } = await import(pathToFileURL(resolve('vite')));
  const folder = mkdtempSync(join(tmpdir(), 'vite-'));
  const server = await createVite({
    configFile: false,
    root: folder,
    logLevel: 'silent',
    appType: 'custom',
    server: {
      port: 0,
      host: '127.0.0.1',
      // The short form names the target as the host.
      proxy: { '/': options === undefined ? inner.url : { target: inner.url, ...options } },
    },
  });
  await server.listen();
  return {
    url: `http://127.0.0.1:${server.httpServer.address().port}`,
    hasSockets: options?.ws === true,
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
  'Next.js, App Router': next(appRouter, ''),
  'Next.js, an API route of the Pages Router': next(pagesRouter, '/api/ai'),
  'Vite, a proxy in the short form': vite(),
  'Vite, a proxy with sockets': vite({ ws: true }),
  'Vite, a proxy with sockets that changes the host': vite({
    ws: true,
    changeOrigin: true,
    rewriteWsOrigin: true,
  }),
  'a proxy that removes /ai': stripping(false),
  'a proxy that removes and names /ai': stripping(true),
};
