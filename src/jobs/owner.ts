/** The token of this name sees and changes everything. */
export const OPERATOR = "operator";

/** Who asks, without a token where one is needed, whether the service is alive or ready, and is told no more. */
export const PROBE = "probe";

const TOKEN = "token:";

/** How a request names its client that came with a token of this name. */
export function clientOfToken(name: string): string {
  return TOKEN + name;
}

/**
 * The only owner whose rollouts, groups and batches a client sees; null for one that sees all: the operator's token,
 * and whoever needs none, because that is one owner.
 */
export function scopeOf(client: string): string | null {
  return client.startsWith(TOKEN) && client !== clientOfToken(OPERATOR) ? client : null;
}

/** What an owner calls something by, among what others call alike. */
export function inScope(client: string, key: string): string {
  const scope = scopeOf(client);
  return scope === null ? key : `${scope}/${key}`;
}

export function sees(client: string, owner: string): boolean {
  const scope = scopeOf(client);
  return scope === null || scope === owner;
}

/** Who submitted a group. @param template as it is stored */
export function clientOfGroup({ template }: { template: string }): string {
  return (JSON.parse(template) as { row: { client?: string } }).row.client ?? "";
}

/** Who submitted a batch. @param options as they are stored */
export function clientOfBatch({ options }: { options: string }): string {
  return (JSON.parse(options) as { client?: string }).client ?? "";
}
