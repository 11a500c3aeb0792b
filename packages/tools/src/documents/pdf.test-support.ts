import { deflateSync } from 'node:zlib';

/** A PDF with a page for each of these content streams. */
export const pdfOf = (contents: readonly string[], isDeflated = false): Buffer => {
  const parts: Buffer[] = [];
  const offsets: number[] = [];
  const put = (...added: readonly (string | Buffer)[]): void => {
    for (const part of added)
      parts.push(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
  };
  const size = (): number => parts.reduce((sum, part) => sum + part.length, 0);
  const putObject = (body: readonly (string | Buffer)[]): void => {
    offsets.push(size());
    put(`${offsets.length} 0 obj\n`, ...body, '\nendobj\n');
  };
  put('%PDF-1.4\n');
  const kids = contents.map((_, at) => `${4 + 2 * at} 0 R`).join(' ');
  putObject(['<< /Type /Catalog /Pages 2 0 R >>']);
  putObject([`<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`]);
  putObject(['<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>']);
  for (const [at, content] of contents.entries()) {
    const raw = Buffer.from(content, 'latin1');
    const data = isDeflated ? deflateSync(raw) : raw;
    const filter = isDeflated ? ' /Filter /FlateDecode' : '';
    const resources = '/Resources << /Font << /F1 3 0 R >> >>';
    putObject([
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] ${resources} /Contents ${5 + 2 * at} 0 R >>`,
    ]);
    putObject([`<< /Length ${data.length}${filter} >>\nstream\n`, data, '\nendstream']);
  }
  const start = size();
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`);
  put(`xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n`, ...entries);
  put(`trailer << /Size ${offsets.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`);
  return Buffer.concat(parts);
};

/** The content stream of a page with these lines. */
export const pageOf = (...lines: readonly string[]): string =>
  `BT /F1 12 Tf 50 750 Td ${lines.map((line) => `(${line}) Tj 0 -16 Td`).join(' ')} ET`;
