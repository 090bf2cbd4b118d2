// What the program prints to a stream, from the constructor on.
#pragma once
#include <cstdio>
#include <string>
#include <unistd.h>

class Captured {
public:
    explicit Captured(std::FILE *stream) : stream(stream), file(std::tmpfile()), own(dup(fileno(stream)))
    {
        std::fflush(stream);
        dup2(fileno(file), fileno(stream));
    }
    ~Captured()
    {
        back();
        std::fclose(file);
        close(own);
    }
    std::string text()
    {
        back();
        std::string all;
        std::rewind(file);
        for (int c; (c = std::fgetc(file)) != EOF;)
            all += char(c);
        return all;
    }

private:
    void back()
    {
        std::fflush(stream);
        dup2(own, fileno(stream));
    }
    std::FILE *stream, *file;
    int own;
};
