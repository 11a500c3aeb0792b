import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';

const types = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** Serves the files of a folder on 127.0.0.1 below a path, at a port that is free, for reading. */
export async function serveFolder(folder, base = '/') {
  const server = createServer((request, response) => {
    const path = pathOf(request.url, base);
    const file = path === undefined ? undefined : join(folder, path);
    if (file === undefined || !isFile(file)) {
      response.writeHead(404, { 'content-type': types['.html'] });
      createReadStream(join(folder, '404.html')).pipe(response);
      return;
    }
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}${base}`, close: () => server.close() };
}

/** The path of a request below the base, or undefined if it leads out of it. */
function pathOf(url, base) {
  try {
    const { pathname } = new URL(url, 'http://site');
    if (!pathname.startsWith(base)) return undefined;
    const path = normalize(decodeURIComponent(pathname.slice(base.length - 1)));
    if (path.split(sep).includes('..')) return undefined;
    return path.endsWith(sep) ? join(path, 'index.html') : path;
  } catch {
    return undefined;
  }
}
