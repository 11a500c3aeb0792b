import { loadDriver, type SqliteConnection } from './sqlite-driver.js';

/** Works on a database file from outside, with the driver that the store uses as well. */
export const changeFile = async <T>(
  path: string,
  work: (connection: SqliteConnection) => T | Promise<T>,
): Promise<T> => {
  const driver = await loadDriver();
  if (driver === undefined) throw new Error('There is no driver.');
  const connection = driver.open(path);
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
};
