/* The page of the HTTP API: Swagger UI over the document that this server answers. */
"use strict";

(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  SwaggerUIBundle({ url: "/openapi.json", dom_id: "#operations", deepLinking: true, docExpansion: "list", validatorUrl: null });
})();
