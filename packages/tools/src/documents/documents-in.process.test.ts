import { renameSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { lastValueFrom, take, toArray } from 'rxjs';
import { bySize, type ChunkedDocument } from 'millrace/retrieval';
import { documentsIn, type DocumentsInOptions } from './documents-in.js';
import { pageOf, pdfOf } from './pdf.test-support.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'documents-in-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

const write = async (files: Readonly<Record<string, string | Uint8Array>>): Promise<void> => {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
};

const readAll = async (options: DocumentsInOptions = {}) => {
  const reports: (readonly [warning: string, source: string])[] = [];
  const report = (...given: readonly [string, string]): void => void reports.push(given);
  const documents = await lastValueFrom(
    documentsIn(directory, { report, ...options }).pipe(toArray()),
  );
  return { documents, reports };
};

const sourcesOf = (documents: readonly ChunkedDocument[]): readonly string[] =>
  documents.map(({ source }) => source);

const chunkOf = ({ text, chunks: [first] }: ChunkedDocument) => ({
  ...first,
  text: text.slice(first?.from, first?.to),
});

describe('documentsIn', () => {
  it('reads Markdown, text, HTML and PDF in order, and skips the rest', async () => {
    await write({
      'a.md': '\ufeff# Mill\nA race.',
      'b/c.TXT': 'Plain.',
      'b/page.html':
        '<title>T</title><nav>Menu</nav><main><h1>Gate</h1><h2>Use</h2><p>It <b>closes</b>.</p></main>',
      'manual.pdf': pdfOf([pageOf('First page.'), pageOf('Second page.', 'More.')], true),
      'image.png': 'x',
      '.hidden.md': 'x',
      'node_modules/x.md': 'x',
      'old/x.md': 'x',
      'empty.md': '',
    });
    const { documents, reports } = await readAll({
      exclude: (path) => path === 'old',
      prefix: 'kb/',
    });
    expect(reports).toEqual([]);
    expect(sourcesOf(documents)).toEqual([
      'kb/a.md',
      'kb/b/c.TXT',
      'kb/b/page.html',
      'kb/empty.md',
      'kb/manual.pdf',
    ]);
    const [a, , page, empty, pdf] = documents.map((it) => ({ ...it, first: chunkOf(it) }));
    expect(a?.text).toBe('# Mill\nA race.');
    expect(a?.first).toMatchObject({ text: 'A race.', title: 'Mill', line: 2 });
    expect(page?.first).toMatchObject({ text: 'It **closes**.', title: 'T › Gate › Use' });
    expect(empty?.chunks).toEqual([]);
    expect(pdf?.chunks.map(({ source }) => source)).toEqual([
      'kb/manual.pdf#page=1',
      'kb/manual.pdf#page=2',
    ]);
    expect(pdf?.text.replaceAll('\n', ' ')).toContain('Second page. More.');
  });

  it('reads other extensions as text, and splits as configured', async () => {
    await write({ 'a.log': 'x'.repeat(250), 'b.md': 'y' });
    const { documents } = await readAll({
      extensions: ['.log'],
      chunk: bySize({ maxLength: 100, overlap: 0 }),
    });
    expect(documents.map(({ chunks }) => chunks.length)).toEqual([3]);
  });

  it('reports broken files, and reads the others', async () => {
    await write({
      'a.pdf': '%PDF-1.4 nonsense',
      'b.pdf': pdfOf([pageOf('cut')]).subarray(0, 300),
      'c.pdf': pdfOf(['']),
      'd.md': 'x'.repeat(3_001),
      'e.pdf': pdfOf([pageOf('good')]),
      'f.html': '<p>good',
    });
    const { documents, reports } = await readAll({ maxBytes: 3_000 });
    expect(sourcesOf(documents)).toEqual(['c.pdf', 'e.pdf', 'f.html']);
    expect(reports).toEqual([
      ['a.pdf was skipped: Invalid PDF structure.', 'a.pdf'],
      ['b.pdf was skipped: Invalid PDF structure.', 'b.pdf'],
      ['c.pdf has no text: it may be scanned.', 'c.pdf'],
      ['d.md was skipped: it has more than 3000 bytes (maxBytes).', 'd.md'],
    ]);
  });

  it('reads the file after a PDF that fails again after it was read', async () => {
    const broken = pdfOf([pageOf('one'), pageOf('two')]).toString('latin1');
    await write({
      // No object has this generation: for each page, pdf.js rejects a promise that it does not handle.
      'a.pdf': Buffer.from(broken.replace('[4 0 R 6 0 R]', '[4 5 R 6 5 R]'), 'latin1'),
      'b.pdf': pdfOf([pageOf('good')]),
    });
    const { documents, reports } = await readAll();
    expect(documents.map(({ text }) => text.trim())).toEqual(['', 'good']);
    expect(reports).toEqual([['a.pdf has no text: it may be scanned.', 'a.pdf']]);
  });

  it('stops a PDF that inflates to gigabytes, or takes too long, and reads the next file', async () => {
    await write({
      'a.pdf': pdfOf([' '.repeat(150_000_000)], true),
      'b.pdf': pdfOf([pageOf('good')]),
    });
    const { documents, reports } = await readAll({ maxMemory: 2 ** 27 });
    expect(reports).toEqual([
      [expect.stringMatching(/needs more than 128 MB|too much memory/), 'a.pdf'],
    ]);
    expect(sourcesOf(documents)).toEqual(['b.pdf']);
    const slow = await readAll({ timeoutMs: 1, extensions: ['.pdf'] });
    expect(slow.reports.map(([warning]) => warning)).toEqual([
      expect.stringContaining('longer than 1 ms'),
      expect.stringContaining('longer than 1 ms'),
    ]);
  });

  it('reads hostile HTML, and keeps no address that runs code', async () => {
    const links = [
      'javascript:alert(1)',
      ' \tJaVa\nScRiPt:alert(1)',
      'data:text/html,x',
      'vbscript:x',
      'file:///etc/passwd',
      './b.md',
      'https://x.example/',
    ];
    await write({
      'links.html': `<main>${links.map((it) => `<p><a href="${it}">text</a><img src="${it}" alt="i"></p>`).join('')}</main>`,
      'nested.html': `${'<div>'.repeat(20_000)}deep${'</div>'.repeat(20_000)}`,
      'nul.html': '<p>a\u0000b \ud800c',
      'latin.html': Buffer.from('<meta charset=iso-8859-1><p>M\xfchle', 'latin1'),
      'unknown.html': '<meta charset=klingon><p>Mühle',
      'wide.html': '<meta charset="utf-16"><p>Mühle',
      'undeclared.txt': Buffer.from('M\xfchle', 'latin1'),
    });
    const { documents, reports } = await readAll();
    expect(reports).toEqual([]);
    const texts = Object.fromEntries(documents.map(({ source, text }) => [source, text]));
    expect(texts['links.html']).toMatch(/\(\.\/b\.md\)[^]*https:\/\/x\.example\//u);
    expect(texts['links.html']).not.toMatch(/javascript|data:|vbscript|file:/iu);
    expect(texts['nested.html']).toContain('deep');
    for (const name of ['latin', 'unknown', 'wide']) expect(texts[`${name}.html`]).toBe('Mühle');
    expect(texts['undeclared.txt']).toBe('Mühle');
  });

  it('does not follow links, and does not wait for pipes', async () => {
    await write({ 'real/a.md': 'a' });
    await symlink(join(directory, 'real/a.md'), join(directory, 'link.md'));
    await symlink(join(directory, 'real'), join(directory, 'loop'));
    execFileSync('mkfifo', [join(directory, 'pipe.md')]);
    expect(sourcesOf((await readAll()).documents)).toEqual(['real/a.md']);
  });

  it.each(['real', 'real/a.md'])(
    'X17: reads nothing outside if a directory is replaced by a link at %s, and reports it',
    async (moment) => {
      await write({ 'outside/a.md': 'SECRET', 'inner/real/a.md': 'a', 'inner/z.md': 'z' });
      const exclude = (path: string): boolean => {
        if (path !== moment) return false;
        renameSync(join(directory, 'inner/real'), join(directory, 'moved'));
        symlinkSync(join(directory, 'outside'), join(directory, 'inner/real'));
        return false;
      };
      const reports: string[] = [];
      const inner = documentsIn(join(directory, 'inner'), {
        exclude,
        report: (_, source) => void reports.push(source),
      });
      const documents = await lastValueFrom(inner.pipe(toArray()));
      expect(documents.map(({ text }) => text)).toEqual(['z']);
      expect(reports).toEqual([moment]);
    },
  );

  it('errors for a directory that is missing, and for too many files', async () => {
    await write({ 'a.md': 'a', 'b.md': 'b' });
    await expect(readAll({ maxFiles: 1 })).rejects.toMatchObject({ code: 'tooLarge' });
    expect(await readAll({ maxFiles: undefined })).toEqual(await readAll({}));
    const missing = documentsIn(join(directory, 'missing'));
    await expect(lastValueFrom(missing)).rejects.toMatchObject({ code: 'config' });
    expect(() => documentsIn(directory, { extensions: ['md'] })).toThrow("such as '.md'");
    const wrong: object = { depth: 1 };
    expect(() => documentsIn(directory, wrong)).toThrow("has no option 'depth'");
  });

  it('reads a file only when it is asked for, and stops when it is left', async () => {
    await write({ 'a.md': 'a', 'b.md': 'b', 'c.pdf': pdfOf([' '.repeat(30_000_000)], true) });
    const iterator = documentsIn(directory)[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ source: 'a.md' });
    await writeFile(join(directory, 'b.md'), 'changed');
    expect((await iterator.next()).value).toMatchObject({ text: 'changed' });
    const waiting = iterator.next();
    expect(await iterator.return?.()).toMatchObject({ done: true });
    expect(await waiting).toMatchObject({ done: true });
    expect(await lastValueFrom(documentsIn(directory).pipe(take(1)))).toMatchObject({ text: 'a' });
  });
});
