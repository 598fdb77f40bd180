/** Messages of JSON-RPC 2.0, as the Model Context Protocol uses them. */
export type RpcRequest = { jsonrpc: "2.0"; id: number; method: string; params?: unknown };
export type RpcNotification = { jsonrpc: "2.0"; method: string; params?: unknown };
export type RpcResponse = {
  id?: unknown;
  result?: unknown;
  error?: { code?: number; message?: string };
};

/** A way to a server. What goes wrong on it is an Error; what the server refuses is a response with `error`. */
export interface McpTransport {
  request(message: RpcRequest, signal: AbortSignal): Promise<RpcResponse>;
  notify(message: RpcNotification, signal: AbortSignal): Promise<void>;
  /** The version that both sides agreed on. */
  agreed(protocolVersion: string): void;
  /** Does not fail. */
  close(): Promise<void>;
}

/** Of one message. Units: bytes. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
