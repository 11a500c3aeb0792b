import { renameSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, map, toArray } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { markdownFiles, type MarkdownFilesOptions } from './markdown-files.js';
import { searchDocuments } from './search-documents.js';

let root: string;

const write = async (path: string, text = `# ${path}`): Promise<void> => {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
};

const paths = (options?: MarkdownFilesOptions): Promise<readonly string[]> =>
  lastValueFrom(
    from(markdownFiles(root, options)()).pipe(
      map(({ path }) => path),
      toArray(),
    ),
  );

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'markdown-files-'));
});
afterEach(() => rm(root, { recursive: true }));

describe('markdownFiles', () => {
  it('reads Markdown below a directory, in order', async () => {
    for (const path of ['b.md', 'a/z.markdown', 'a/b/c.MD', 'code.ts', 'README.md'])
      await write(path);
    expect(await paths()).toEqual(['README.md', 'a/b/c.MD', 'a/z.markdown', 'b.md']);
    expect(await paths({ extensions: ['.ts'] })).toEqual(['code.ts']);
  });

  it('passes over installed, built and hidden files', async () => {
    for (const path of [
      'node_modules/x/a.md',
      'p/node_modules/a.md',
      'dist/a.md',
      '.git/a.md',
      '.a.md',
    ]) {
      await write(path);
    }
    expect(await paths()).toEqual([]);
  });

  it('skips the excluded files and directories', async () => {
    for (const path of ['a.md', 'a.api.md', 'p/temp/a.md', 'p/a.md', 'temporary.md']) {
      await write(path);
    }
    const asked: string[] = [];
    const exclude = (path: string): boolean => {
      asked.push(path);
      return path.endsWith('.api.md') || path.endsWith('/temp');
    };
    expect(await paths({ exclude })).toEqual(['a.md', 'p/a.md', 'temporary.md']);
    expect(asked).not.toContain('p/temp/a.md');
  });

  it('does not follow links', async () => {
    await write('real/a.md');
    await symlink(join(root, 'real'), join(root, 'linked'));
    await symlink(join(root, 'real/a.md'), join(root, 'link.md'));
    await symlink(root, join(root, 'real/loop'));
    expect(await paths()).toEqual(['real/a.md']);
  });

  it.each(['inner/real', 'inner/real/a.md'])(
    'X17: reads nothing outside if a directory is replaced by a link at %s',
    async (moment) => {
      await write('outside/real/a.md', 'SECRET');
      await write('inner/real/a.md');
      const exclude = (path: string): boolean => {
        if (path !== moment.slice('inner/'.length)) return false;
        renameSync(join(root, 'inner/real'), join(root, 'moved'));
        symlinkSync(join(root, 'outside/real'), join(root, 'inner/real'));
        return false;
      };
      const texts: string[] = [];
      const read = async (): Promise<void> => {
        for await (const { text } of markdownFiles(join(root, 'inner'), { exclude })()) {
          texts.push(text);
        }
      };
      await expect(read()).rejects.toThrow();
      expect(texts).toEqual([]);
    },
  );

  it('refuses more files, or more bytes, than it may read', async () => {
    for (const path of ['a.md', 'b.md', 'c.md']) await write(path, 'x'.repeat(10));
    await expect(paths({ maxFiles: 2 })).rejects.toThrow(/more than 2 files.*'maxFiles'/u);
    await expect(paths({ maxBytes: 29 })).rejects.toThrow(/more than 29 bytes.*'maxBytes'/u);
    expect(await paths({ maxFiles: 3, maxBytes: 30 })).toHaveLength(3);
  });

  it('feeds a search', async () => {
    await write('docs/mill.md', '# The mill\nThe wheel turns.');
    const { text } = await runTool(searchDocuments({ load: markdownFiles(root) }), {
      query: 'wheel',
    });
    expect(text).toContain('1. docs/mill.md:1 › The mill (relevance 100 %)\nThe wheel turns.');
  });

  it('reports that the directory is missing', async () => {
    const tool = searchDocuments({ load: markdownFiles(join(root, 'missing')) });
    await expect(runTool(tool, { query: 'wheel' })).rejects.toThrow('ENOENT');
  });
});
